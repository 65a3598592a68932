package postgres

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"almanac/internal/failure"
	"almanac/internal/source"
)

// statement is a query with its parameters numbered, as PostgreSQL wants them.
type statement struct {
	text  string   // as it was written
	sql   string   // ":name" has become "$1"
	names []string // by number, the first being $1; each name once
	edits []edit   // where the two texts part, in order
}

// edit is one parameter: its place in both texts, in bytes.
type edit struct {
	from, fromEnd int // in the original
	to, toEnd     int // in sql
}

// scan numbers the parameters of a query and refuses what is no single statement. It knows what PostgreSQL's own lexer
// knows of texts, names and comments (https://www.postgresql.org/docs/current/sql-syntax-lexical.html), so that a colon
// within them is left alone, with standard_conforming_strings on, which the session sets. What the server would
// understand otherwise it refuses by itself: it takes one statement at a time.
//
// A slice of an array whose upper bound is a bare name must have a space behind its colon, as in a[1: n].
func scan(sql string) (statement, error) {
	s := scanner{in: sql, numbers: map[string]int{}}
	if err := s.run(); err != nil {
		return statement{}, err
	}
	s.out.WriteString(sql[s.copied:])
	s.statement.text, s.statement.sql = sql, s.out.String()
	return s.statement, nil
}

type scanner struct {
	statement
	in      string
	at      int
	out     strings.Builder
	copied  int // of in
	numbers map[string]int
	begun   bool // a word of the statement was seen
	ended   bool // and then a semicolon
}

func (s *scanner) run() error {
	for s.at < len(s.in) {
		switch c := s.in[s.at]; {
		case space(c):
			s.at++
		case s.starts("--"):
			s.line()
		case s.starts("/*"):
			s.comment()
		case c == ';':
			s.at++
			s.ended = s.begun
		case s.ended:
			return failure.New(failure.QueryInvalid, "the query has more than one statement (%q follows the first): write one SELECT", failure.Cut(strings.TrimSpace(s.in[s.at:]), 40))
		default:
			s.begun = true
			if err := s.token(c); err != nil {
				return err
			}
		}
	}
	if !s.begun {
		return failure.New(failure.QueryInvalid, "the query is empty: write one SELECT")
	}
	return nil
}

func (s *scanner) token(c byte) error {
	switch {
	case c == '\'':
		s.text(false)
	case c == '"':
		s.quoted('"', false)
	case c == '$':
		return s.dollar()
	case c == ':':
		return s.colon()
	case nameStart(c):
		from := s.at
		for s.at < len(s.in) && (namePart(s.in[s.at]) || s.in[s.at] == '$') {
			s.at++
		}
		if word := s.in[from:s.at]; (word == "e" || word == "E") && s.starts("'") {
			s.text(true)
		}
	default:
		s.at++
	}
	return nil
}

func (s *scanner) starts(prefix string) bool { return strings.HasPrefix(s.in[s.at:], prefix) }

func (s *scanner) line() {
	if i := strings.IndexAny(s.in[s.at:], "\r\n"); i >= 0 {
		s.at += i
		return
	}
	s.at = len(s.in)
}

// comment skips one that may hold others.
func (s *scanner) comment() {
	for depth := 0; s.at < len(s.in); {
		switch {
		case s.starts("/*"):
			depth++
			s.at += 2
		case s.starts("*/"):
			depth--
			s.at += 2
			if depth == 0 {
				return
			}
		default:
			s.at++
		}
	}
}

// quoted skips to behind the closing quote; a doubled one is part of the text.
func (s *scanner) quoted(quote byte, backslashes bool) {
	for s.at++; s.at < len(s.in); s.at++ {
		switch c := s.in[s.at]; {
		case c == '\\' && backslashes:
			s.at++
		case c == quote && s.at+1 < len(s.in) && s.in[s.at+1] == quote:
			s.at++
		case c == quote:
			s.at++
			return
		}
	}
	s.at = len(s.in)
}

// text skips a text and what continues it: a further one behind white space with a line break is of the same kind.
func (s *scanner) text(backslashes bool) {
	for {
		s.quoted('\'', backslashes)
		end, broken := s.at, false
		for s.at < len(s.in) {
			if c := s.in[s.at]; space(c) {
				broken = broken || c == '\n' || c == '\r'
				s.at++
			} else if s.starts("--") {
				s.line()
			} else {
				break
			}
		}
		if !broken || !s.starts("'") {
			s.at = end
			return
		}
	}
}

// dollar skips a text in dollar quotes, and refuses a parameter by number.
func (s *scanner) dollar() error {
	rest := s.in[s.at+1:]
	if rest != "" && rest[0] >= '0' && rest[0] <= '9' {
		n := 0
		for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
			n++
		}
		return failure.New(failure.ParameterInvalid, "the query uses the parameter $%s: name parameters with a colon, as in :workspace", failure.Cut(rest[:n], 80))
	}
	n := 0
	if rest != "" && nameStart(rest[0]) {
		for n < len(rest) && namePart(rest[n]) {
			n++
		}
	}
	if n == len(rest) || rest[n] != '$' {
		s.at++
		return nil
	}
	tag := s.in[s.at : s.at+n+2]
	s.at += len(tag)
	if i := strings.Index(s.in[s.at:], tag); i >= 0 {
		s.at += i + len(tag)
	} else {
		s.at = len(s.in)
	}
	return nil
}

// colon tells a cast and an assignment from a parameter, and numbers the latter.
func (s *scanner) colon() error {
	if s.starts("::") || s.starts(":=") {
		s.at += 2
		return nil
	}
	end := s.at + 1
	if end < len(s.in) && nameStart(s.in[end]) {
		for end < len(s.in) && namePart(s.in[end]) {
			end++
		}
	}
	name := s.in[s.at+1 : end]
	if name == "" {
		s.at++
		return nil
	}
	number, known := s.numbers[name]
	if !known {
		s.names = append(s.names, name)
		number = len(s.names)
		s.numbers[name] = number
		if number > maxParams {
			return failure.New(failure.ParameterInvalid, "the query uses more than %d parameters: use fewer", maxParams)
		}
	}
	s.out.WriteString(s.in[s.copied:s.at])
	e := edit{from: s.at, fromEnd: end, to: s.out.Len()}
	s.out.WriteString(spelled[number])
	e.toEnd = s.out.Len()
	s.edits = append(s.edits, e)
	s.at, s.copied = end, end
	return nil
}

// maxParams is far below the protocol's 65,535: https://www.postgresql.org/docs/current/limits.html
const maxParams = 1000

// original is where a character of sql, counted from 1 as PostgreSQL counts, stands in the text that a person wrote, in
// bytes; -1 where there is none.
func (st statement) original(position int) int {
	at := 0
	for range position - 1 {
		if at >= len(st.sql) {
			return -1
		}
		_, n := utf8.DecodeRuneInString(st.sql[at:])
		at += n
	}
	shift := 0
	for _, e := range st.edits {
		if at < e.to {
			break
		}
		if at < e.toEnd {
			return e.from
		}
		shift = e.fromEnd - e.toEnd
	}
	return at + shift
}

var numbered = regexp.MustCompile(`\$[0-9]+`)

// named spells the numbered parameters in a message of the server as a person wrote them.
func (st statement) named(message string) string {
	return numbered.ReplaceAllStringFunc(message, func(s string) string {
		if n, err := strconv.Atoi(s[1:]); err == nil && n >= 1 && n <= len(st.names) {
			return ":" + st.names[n-1]
		}
		return s
	})
}

func space(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'
}

func nameStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

func namePart(c byte) bool { return nameStart(c) || c >= '0' && c <= '9' }

// prepare checks a query's text and its parameters and gives what the server is asked.
func prepare(q source.Query) (statement, arguments, error) {
	if err := source.CheckText(q.SQL); err != nil {
		return statement{}, arguments{}, err
	}
	st, err := scan(q.SQL)
	if err != nil {
		return st, arguments{}, err
	}
	args, err := bind(st.names, q.Params)
	return st, args, err
}
