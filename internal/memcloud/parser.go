package memcloud

import (
	"strconv"
	"strings"
)

// parser reads one expression. The first error sticks and moves the parser to
// the end, so that every loop ends.
type parser struct {
	kind      string // "ConditionExpression", ...: named in errors
	text      string
	tokens    []token
	next      int
	scope     *scope
	operators int
	err       error
}

func newParser(kind, text string, s *scope) (*parser, error) {
	s.any = true
	if text == "" {
		return nil, invalid("Invalid %s: The expression can not be empty;", kind)
	}
	if len(text) > maxExpression {
		return nil, invalid("Invalid %s: Expression size has exceeded the maximum allowed size; expression size: %d", kind, len(text))
	}
	tokens, bad := lex(text)
	p := &parser{kind: kind, text: text, tokens: tokens, scope: s}
	if bad >= 0 {
		p.tokens = append(p.tokens, token{kind: tokenEnd, at: len(text)})
		p.syntaxAt(token{text: text[bad : bad+1], at: bad})
		return nil, p.err
	}
	return p, nil
}

func (p *parser) peek() token { return p.tokens[p.next] }

func (p *parser) take() token {
	t := p.tokens[p.next]
	if t.kind != tokenEnd {
		p.next++
	}
	return t
}

// mark takes a punctuation mark if it comes next.
func (p *parser) mark(text string) bool {
	t := p.peek()
	if t.kind == tokenMark && t.text == text {
		p.next++
		return true
	}
	return false
}

func (p *parser) expect(text string) {
	if !p.mark(text) {
		p.syntax()
	}
}

// keyword takes a keyword if it comes next; case does not matter.
func (p *parser) keyword(word string) bool {
	t := p.peek()
	if t.kind == tokenWord && strings.EqualFold(t.text, word) {
		p.next++
		return true
	}
	return false
}

// call takes "name(" if it comes next; the case of functions matters.
func (p *parser) call() (name string, ok bool) {
	t := p.peek()
	if t.kind != tokenWord || p.next+1 >= len(p.tokens) {
		return "", false
	}
	if after := p.tokens[p.next+1]; after.kind != tokenMark || after.text != "(" {
		return "", false
	}
	p.next += 2
	p.count()
	return t.text, true
}

// count counts an operator or function.
func (p *parser) count() {
	p.operators++
	if p.operators > maxOperators {
		p.fail("The expression contains too many operators; operator count: %d", p.operators)
	}
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = invalid("Invalid "+p.kind+": "+format, args...)
	}
	p.next = len(p.tokens) - 1
}

func (p *parser) syntax() { p.syntaxAt(p.peek()) }

func (p *parser) syntaxAt(t token) {
	from, to := t.at, min(len(p.text), t.at+len(t.text))
	for i, o := range p.tokens { // near is the token with its neighbours
		if o.at < t.at {
			from = o.at
		}
		if o.at > t.at && i > 0 && p.tokens[i-1].at <= t.at && o.kind != tokenEnd {
			to = o.at + len(o.text)
			break
		}
	}
	p.fail("Syntax error; token: \"%s\", near: \"%s\"", t.text, p.text[from:to])
}

// finish wants the end of the expression.
func (p *parser) finish() error {
	if p.err == nil && p.peek().kind != tokenEnd {
		p.syntax()
	}
	return p.err
}

// path reads a document path.
func (p *parser) path() path {
	out := path{{name: p.name(), index: -1}}
	for p.err == nil {
		switch {
		case p.mark("."):
			out = append(out, step{name: p.name(), index: -1})
		case p.mark("["):
			t := p.take()
			n, err := strconv.Atoi(t.text)
			if t.kind != tokenNumber || err != nil || len(t.text) > 1 && t.text[0] == '0' {
				p.syntaxAt(t)
			}
			out = append(out, step{index: n})
			p.expect("]")
		default:
			if len(out) > maxDepth {
				p.fail("The document path has too many nesting levels; nesting levels: %d", len(out))
			}
			return out
		}
	}
	return out
}

// name reads one part of a path: #placeholder, or a word that is not reserved.
func (p *parser) name() string {
	t := p.take()
	switch t.kind {
	case tokenName:
		name, ok := p.scope.names[t.text]
		if !ok {
			p.fail("An expression attribute name used in the document path is not defined; attribute name: %s", t.text)
		}
		p.scope.usedNames[t.text] = true
		return name
	case tokenWord:
		if reserved(t.text) {
			p.fail("Attribute name is a reserved keyword; reserved keyword: %s", t.text)
		}
		return t.text
	}
	p.syntaxAt(t)
	return ""
}

// pathsOf reads a list of paths parted by commas.
func (p *parser) pathsOf() []path {
	out := []path{p.path()}
	for p.mark(",") {
		out = append(out, p.path())
	}
	return out
}

// projection parses a ProjectionExpression; nil means none was given.
func (s *scope) projection(text *string) ([]path, error) {
	if text == nil {
		return nil, nil
	}
	p, err := newParser("ProjectionExpression", *text, s)
	if err != nil {
		return nil, err
	}
	paths := p.pathsOf()
	if err := p.finish(); err != nil {
		return nil, err
	}
	return paths, checkDistinct(p.kind, paths)
}
