package athena

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"almanac/internal/failure"
	"almanac/internal/source"
)

// Bounds of what is sent. https://docs.aws.amazon.com/athena/latest/ug/service-limits.html (query string length) and
// https://docs.aws.amazon.com/athena/latest/APIReference/API_StartQueryExecution.html (ExecutionParameters).
const (
	maxQuery     = 262_144 // bytes
	maxParameter = 1024    // characters
)

// compile turns a query into the text that Athena takes and the literals of its parameters, in the order of use; inline has
// them in the text.
func compile(sql string, params map[string]any, inline bool) (text string, literals []string, err error) {
	if err := source.CheckText(sql); err != nil {
		return "", nil, err
	}
	l := lexer{sql: sql}
	var b strings.Builder
	used, from, ended := map[string]bool{}, 0, -1
	for {
		t := l.next()
		if t.kind == tokenEnd {
			break
		}
		if ended >= 0 {
			return "", nil, failure.New(failure.QueryInvalid, "the query has more than one statement (%q follows the first): write one SELECT", failure.Cut(strings.TrimSpace(sql[t.from:]), 40))
		}
		switch t.kind {
		case tokenSemicolon:
			b.WriteString(sql[from:t.from])
			ended = t.from
		case tokenMark:
			return "", nil, failure.New(failure.ParameterInvalid, "the query uses the parameter ?%s: name parameters with a colon, as in :workspace", source.Where(sql, t.from))
		case tokenName:
			name := sql[t.from+1 : t.to]
			literal, err := literalOf(name, params)
			if err != nil {
				return "", nil, err
			}
			used[name] = true
			b.WriteString(sql[from:t.from])
			if from = t.to; inline {
				b.WriteString(literal)
				continue
			}
			b.WriteByte('?')
			literals = append(literals, literal)
		}
	}
	if l.words == 0 {
		return "", nil, failure.New(failure.QueryInvalid, "the query is empty: write one SELECT")
	}
	if ended < 0 {
		b.WriteString(sql[from:])
	}
	if b.Len() > maxQuery {
		return "", nil, failure.New(failure.QueryInvalid, "the query has %d bytes; Athena takes at most %d", b.Len(), maxQuery)
	}
	return b.String(), literals, source.CheckUsed(params, func(name string) bool { return used[name] })
}

// literalOf spells a parameter's value as Athena's SQL.
func literalOf(name string, params map[string]any) (string, error) {
	value, given := params[name]
	if !given {
		return "", source.Absent(":" + name)
	}
	if err := source.CheckValue(name, value); err != nil {
		return "", err
	}
	text := ""
	switch v := value.(type) {
	case nil:
		return "NULL", nil
	case bool:
		return strings.ToUpper(strconv.FormatBool(v)), nil
	case int:
		return integer(int64(v)), nil
	case int64:
		return integer(v), nil
	case float64: // 1e-01 is a double in Athena, 0.1 a decimal
		return strconv.FormatFloat(v, 'e', -1, 64), nil
	case time.Time:
		return v.UTC().Format("TIMESTAMP '2006-01-02 15:04:05.000000'"), nil
	case string:
		text = "'" + strings.ReplaceAll(v, "'", "''") + "'"
	}
	if n := utf8.RuneCountInString(text); n > maxParameter {
		return "", failure.New(failure.ParameterInvalid, "the parameter :%s has %d characters, quotes included; Athena takes at most %d", name, n, maxParameter)
	}
	return text, nil
}

// integer spells the least one as a cast: without its sign it is no bigint.
func integer(n int64) string {
	if n == math.MinInt64 {
		return "CAST('" + strconv.FormatInt(n, 10) + "' AS BIGINT)"
	}
	return strconv.FormatInt(n, 10)
}

// Kinds of token that matter to a parameter.
const (
	tokenEnd = iota
	tokenOther
	tokenSemicolon
	tokenMark // ?
	tokenName // :name
)

type token struct{ kind, from, to int }

// lexer finds what stands outside of comments, texts and quoted names.
// https://trino.io/docs/current/language/comments.html; quotes within quotes are doubled.
type lexer struct {
	sql   string
	at    int
	words int // tokens that are no comment and no semicolon
}

func (l *lexer) next() token {
	for l.at < len(l.sql) {
		from, rest := l.at, l.sql[l.at:]
		switch c := rest[0]; {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f':
			l.at++
		case strings.HasPrefix(rest, "--"):
			l.skip(rest, "\n", 2)
		case strings.HasPrefix(rest, "/*"):
			l.skip(rest, "*/", 2)
		case c == '\'' || c == '"' || c == '`':
			l.words++
			l.skip(rest, string(c), 1)
			return token{tokenOther, from, l.at}
		case c == ';':
			l.at++
			return token{tokenSemicolon, from, l.at}
		case c == '?':
			l.words++
			l.at++
			return token{tokenMark, from, l.at}
		case c == ':' && len(rest) > 1 && nameStart(rest[1]):
			l.words++
			l.at += 2
			for l.at < len(l.sql) && (nameStart(l.sql[l.at]) || l.sql[l.at] >= '0' && l.sql[l.at] <= '9') {
				l.at++
			}
			return token{tokenName, from, l.at}
		default:
			l.words++
			l.at++
			return token{tokenOther, from, l.at}
		}
	}
	return token{tokenEnd, l.at, l.at}
}

// skip goes behind the next end mark, or to the end of the text.
func (l *lexer) skip(rest, end string, head int) {
	i := strings.Index(rest[head:], end)
	if i < 0 {
		l.at = len(l.sql)
		return
	}
	l.at += head + i + len(end)
}

func nameStart(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }
