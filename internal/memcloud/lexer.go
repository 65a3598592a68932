package memcloud

import (
	"strings"

	"github.com/aws/smithy-go"
)

// maxExpression is the longest expression in bytes, maxOperators the most
// operators and functions in one. Source: "Quotas",
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
const (
	maxExpression = 4096
	maxOperators  = 300
	maxInOperands = 100
)

type tokenKind int

const (
	tokenEnd    tokenKind = iota
	tokenWord             // a bare name, a keyword or a function
	tokenName             // #name
	tokenValue            // :value
	tokenNumber           // an index
	tokenMark             // punctuation or an operator
)

type token struct {
	kind tokenKind
	text string
	at   int // byte offset in the expression
}

func letter(c byte) bool   { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func digit(c byte) bool    { return c >= '0' && c <= '9' }
func wordByte(c byte) bool { return letter(c) || digit(c) || c == '_' }

// lex cuts an expression into tokens, the last being tokenEnd. The position
// of a byte that begins no token comes back as bad (else -1).
func lex(text string) (tokens []token, bad int) {
	tokens = make([]token, 0, 2+len(text)/3)
	for i := 0; i < len(text); {
		c := text[i]
		if c == ' ' || c == '\t' || c == '\n' || c == '\r' {
			i++
			continue
		}
		t := token{at: i}
		end := i + 1
		switch {
		case letter(c):
			t.kind, end = tokenWord, span(text, end, wordByte)
		case digit(c):
			t.kind, end = tokenNumber, span(text, end, digit)
		case c == '#' || c == ':':
			t.kind, end = tokenName, span(text, end, wordByte)
			if c == ':' {
				t.kind = tokenValue
			}
			if end == i+1 {
				return tokens, i
			}
		case strings.IndexByte("()[].,=+-", c) >= 0:
			t.kind = tokenMark
		case c == '<' || c == '>':
			t.kind = tokenMark
			if end < len(text) && (text[end] == '=' || c == '<' && text[end] == '>') {
				end++
			}
		default:
			return tokens, i
		}
		t.text = text[i:end]
		tokens = append(tokens, t)
		i = end
	}
	return append(tokens, token{kind: tokenEnd, text: "<EOF>", at: len(text)}), -1
}

func span(text string, from int, in func(byte) bool) int {
	for from < len(text) && in(text[from]) {
		from++
	}
	return from
}

// prefixed puts words around the message of a ValidationException.
func prefixed(err error, before, after string) error {
	if api, ok := err.(smithy.APIError); ok {
		return invalid("%s%s%s", before, api.ErrorMessage(), after)
	}
	return err
}
