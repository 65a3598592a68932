package failure_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"

	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { failuretest.Main(m, "failure") }

// Every code is listed once, has an owner that exists, and says what it means and what helps.
func TestTheTableIsSound(t *testing.T) {
	form := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	seen := map[failure.Code]bool{}
	for _, e := range failure.Table {
		if seen[e.Code] {
			t.Errorf("%s is listed twice", e.Code)
		}
		seen[e.Code] = true
		if !form.MatchString(string(e.Code)) {
			t.Errorf("code %q: want small words joined by _", e.Code)
		}
		if info, err := os.Stat("../" + e.Owner); e.Owner == "" || err != nil || !info.IsDir() {
			t.Errorf("%s: owner %q is no folder of internal/", e.Code, e.Owner)
		}
		if e.Meaning == "" || e.Remedy == "" {
			t.Errorf("%s: meaning %q, remedy %q; want both", e.Code, e.Meaning, e.Remedy)
		}
		if e.Class == failure.Passing && (e.Pauses || e.Quiet) {
			t.Errorf("%s passes, so that no run settles with it: it can neither pause nor be quiet", e.Code)
		}
		if got, ok := failure.Lookup(e.Code); !ok || got != e {
			t.Errorf("Lookup(%s) is %+v, %v", e.Code, got, ok)
		}
	}
	if _, ok := failure.Lookup("no_such_code"); ok {
		t.Error("a code that is not listed was found")
	}
}

// A constant that the table does not list would pass for an unknown failure and be tried for ever.
func TestEveryConstantIsListed(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Code" {
			return true
		}
		for _, v := range spec.Values {
			code, err := strconv.Unquote(v.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			n++
			if _, ok := failure.Lookup(failure.Code(code)); !ok {
				t.Errorf("%s is not in Table", code)
			}
		}
		return true
	})
	if n != len(failure.Table) {
		t.Errorf("%d constants, %d entries", n, len(failure.Table))
	}
}

func TestPassing(t *testing.T) {
	for _, e := range failure.Table {
		if got, want := failure.New(e.Code, "x").Passing(), e.Class == failure.Passing; got != want {
			t.Errorf("%s passes: %v, want %v", e.Code, got, want)
		}
	}
	if !failure.New("no_such_code", "x").Passing() {
		t.Error("an unknown code settles a run that a retry would have saved")
	}
}

func TestFromAndIs(t *testing.T) {
	if failure.From(nil) != nil {
		t.Error("no error is a failure")
	}
	cause := errors.New("disk on fire")
	f := failure.Wrap(failure.FileUnavailable, cause, "file %s could not be written", "a.csv").After(time.Minute)
	deep := fmt.Errorf("while delivering: %w", f)
	if failure.From(deep) != f || !failure.Is(deep, failure.FileUnavailable) || failure.Is(deep, failure.FileTooLarge) || failure.Is(nil, failure.FileUnavailable) {
		t.Error("the failure in an error was not found")
	}
	if !errors.Is(deep, cause) || f.RetryAfter != time.Minute {
		t.Error("the cause or the wish for the next try was lost")
	}
	if f.Message != "file a.csv could not be written" || !strings.Contains(f.Error(), "disk on fire") {
		t.Errorf("message %q, error %q: the cause belongs to the error alone", f.Message, f.Error())
	}
	if got := failure.New(failure.FileTooLarge, "%d bytes", 7).Error(); got != "file_too_large: 7 bytes" {
		t.Errorf("without a cause: %q", got)
	}
	stray := fmt.Errorf("unforeseen: %w", cause)
	if f := failuretest.Want(t, stray, failure.InternalError); !f.Passing() || !errors.Is(f, cause) || !strings.Contains(f.Message, "unforeseen: disk on fire") {
		t.Errorf("an error without a code: %+v", f)
	}
	long := failure.From(errors.New(strings.Repeat("ü", 1000)))
	if len(long.Message) > 400 || !utf8.ValidString(long.Message) {
		t.Errorf("an unforeseen text of %d bytes was kept", len(long.Message))
	}
}

// What is cut keeps within its bytes, splits no rune, and says that it was cut.
func TestCut(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"", 5, ""}, {"hello", 5, "hello"}, {"hello!", 5, "he…"}, {"grün ist", 6, "gr…"}, {"grün ist", 7, "grü…"},
		{"日本語です", 15, "日本語です"}, {"日本語です", 14, "日本語…"}, {"日本語です", 11, "日本…"}, {"🙂🙂", 7, "🙂…"}, {"🙂🙂", 6, "…"}, {"hello", 3, "…"},
	} {
		if got := failure.Cut(c.text, c.n); got != c.want {
			t.Errorf("Cut(%q, %d) is %q, want %q", c.text, c.n, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text, n := rapid.String().Draw(t, "text"), rapid.IntRange(3, 60).Draw(t, "n")
		got := failure.Cut(text, n)
		if len(got) > n || !utf8.ValidString(got) {
			t.Fatalf("Cut(%q, %d) is %q: %d bytes", text, n, got, len(got))
		}
		if got != text && (len(text) <= n || !strings.HasSuffix(got, "…") || !strings.HasPrefix(text, strings.TrimSuffix(got, "…"))) {
			t.Fatalf("Cut(%q, %d) is %q", text, n, got)
		}
		if f := failure.New(failure.QueryInvalid, "%s", strings.Repeat(text, 40)); len(f.Cut()) > failure.MaxMessage {
			t.Fatalf("a message of %d bytes would be written", len(f.Cut()))
		}
	})
}
