//go:build mutants

package memcloud

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"almanac/internal/simulate/mutants/toggle"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// weaken switches one part of one of the product's conditions off, where the environment names it, and notes the parts
// that decide. A part is known by the operation of internal/store that sends it, the kind of row, the whole condition, and
// its place in that; so parts are never listed by hand, and none is forgotten.
//
// A conjunct that is switched off holds always, an alternative never. The request stays as it was sent: DynamoDB would
// refuse one with a value that no expression uses.
func weaken(r request, a *action) {
	off := toggle.Part()
	if a.condition == nil || off == "" && !toggle.Tracing() {
		return
	}
	text := spell(a.condition)
	if off != "" && !strings.Contains(off, "\t"+text+"\t") {
		return
	}
	operation := storeOperation()
	if operation == "" {
		return // a test's own request
	}
	name := operation + "\t" + rowKind(r) + "\t" + text
	if off == "" {
		a.condition = &traced{a.condition, known(name, a.condition)}
	} else if at, ok := strings.CutPrefix(off, name+"\t"); ok {
		n, _ := strconv.Atoi(at)
		a.condition = &parted{a.condition, n}
	}
}

// parted is a condition with a part switched off.
type parted struct {
	condition
	off int
}

func (p *parted) holds(item attributes) bool {
	n := p.off
	return holdsLess(p.condition, item, true, &n)
}

// traced is a condition whose parts are noted when they decide.
type traced struct {
	condition
	open *open
}

// open are the parts of a condition that have not decided yet.
type open struct {
	mu    sync.Mutex
	name  string
	parts []int
}

var (
	opens   = map[string]*open{}
	opensMu sync.Mutex
)

// known finds a condition by its name, and notes it the first time.
func known(name string, c condition) *open {
	opensMu.Lock()
	defer opensMu.Unlock()
	o := opens[name]
	if o == nil {
		list := parts(c)
		o = &open{name: name}
		for i := range list {
			o.parts = append(o.parts, i)
		}
		opens[name] = o
		toggle.Note(name + "\t-\t" + strings.Join(list, "\x1f"))
	}
	return o
}

func (t *traced) holds(item attributes) bool {
	holds := t.condition.holds(item)
	o := t.open
	o.mu.Lock()
	defer o.mu.Unlock()
	o.parts = slices.DeleteFunc(o.parts, func(i int) bool {
		n := i
		decides := holdsLess(t.condition, item, true, &n) != holds
		if decides {
			toggle.Note(fmt.Sprintf("%s\t%d", o.name, i))
		}
		return decides
	})
	return holds
}

// parts lists what can be switched off, in the order of holdsLess.
func parts(c condition) []string {
	switch c := c.(type) {
	case allOf:
		return append(parts(c.left), parts(c.right)...)
	case anyOf:
		return append([]string{spell(c)}, alternatives(c)...)
	case group:
		return parts(c.of)
	}
	return []string{spell(c)}
}

// alternatives lists an OR's alternatives, and the conjuncts of each that has several.
func alternatives(c condition) (list []string) {
	if or, ok := c.(anyOf); ok {
		return append(alternatives(or.left), alternatives(or.right)...)
	}
	list = []string{"OR " + spell(c)}
	if inner := parts(c); len(inner) > 1 {
		list = append(list, inner...)
	}
	return list
}

// holdsLess evaluates a condition whose n-th part is off. neutral is what that part comes to: true in an AND.
func holdsLess(c condition, item attributes, neutral bool, n *int) bool {
	switch c := c.(type) {
	case allOf:
		left := holdsLess(c.left, item, neutral, n)
		return holdsLess(c.right, item, neutral, n) && left
	case group:
		return holdsLess(c.of, item, neutral, n)
	case anyOf:
		if taken(n) {
			return true
		}
		return either(c, item, n)
	}
	if taken(n) {
		return neutral
	}
	return c.holds(item)
}

func either(c condition, item attributes, n *int) bool {
	if or, ok := c.(anyOf); ok {
		left := either(or.left, item, n)
		return either(or.right, item, n) || left
	}
	if taken(n) {
		return false
	}
	if inner := parts(c); len(inner) > 1 {
		return holdsLess(c, item, true, n)
	}
	return c.holds(item)
}

// taken counts a part, and reports that it is the one.
func taken(n *int) bool {
	*n--
	return *n == -1
}

// spell writes a condition with the attributes' own names. A value is a question mark, and so is that there is none: what is
// as it was read may have been absent. The state is spelled, which tells one row of a lifecycle from another.
func spell(c condition) string {
	switch c := c.(type) {
	case anyOf:
		return spell(c.left) + " OR " + spell(c.right)
	case allOf:
		return spell(c.left) + " AND " + spell(c.right)
	case negated:
		return "NOT " + spell(c.of)
	case group:
		return "(" + spell(c.of) + ")"
	case comparison:
		return word(c.left, c.left) + " " + c.operator + " " + word(c.right, c.left)
	case between:
		return word(c.of, c.of) + " BETWEEN " + word(c.low, c.of) + " AND " + word(c.high, c.of)
	case oneOf:
		var choices []string
		for _, o := range c.choices {
			choices = append(choices, word(o, c.of))
		}
		return word(c.of, c.of) + " IN (" + strings.Join(choices, ", ") + ")"
	case test:
		if of := word(c.of, c.of); c.function == "attribute_not_exists" && of != "pk" {
			return of + " = ?"
		}
		if c.argument == nil {
			return c.function + "(" + word(c.of, c.of) + ")"
		}
		return c.function + "(" + word(c.of, c.of) + ", " + word(c.argument, c.of) + ")"
	}
	return fmt.Sprintf("%T", c)
}

// word spells an operand that is compared with another one.
func word(o, with operand) string {
	switch o := o.(type) {
	case pathOperand:
		if len(o.path) > 1 && (o.path.root() == "slots" || o.path.root() == "backfill") {
			return o.path.root() + ".‹run›" // a map by run
		}
		var names []string
		for _, s := range o.path {
			names = append(names, s.name)
		}
		return strings.Join(names, ".")
	case sizeOperand:
		return "size(" + word(o.of, o.of) + ")"
	case valueOperand:
		if s, ok := o.value.(*types.AttributeValueMemberS); ok && word(with, with) == "state" {
			return strconv.Quote(s.Value)
		}
	}
	return "?"
}

// rowKind is the kind of a row by its sort key, or by its partition where that has an id alone.
func rowKind(r request) string {
	key := r.key
	if r.item != nil {
		key = r.item
	}
	for _, name := range []string{"sk", "pk"} {
		text, _ := key[name].(*types.AttributeValueMemberS)
		if text == nil {
			continue
		}
		kind, id, _ := strings.Cut(text.Value, "#")
		switch {
		case kind == "META", kind == "" || kind[0] < 'A', kind != strings.ToUpper(kind):
		case strings.Contains("#"+id, "#V#"):
			return kind + "#V"
		default:
			return kind
		}
	}
	return "?"
}

// storeOperation is the innermost exported method of internal/store that is on the stack; empty: the request is no
// product's.
func storeOperation() string {
	var counters [64]uintptr
	frames := runtime.CallersFrames(counters[:runtime.Callers(3, counters[:])])
	for {
		f, more := frames.Next()
		if method, ok := strings.CutPrefix(f.Function, "almanac/internal/store.(*"); ok {
			of, name, _ := strings.Cut(method, ").")
			name, _, _ = strings.Cut(name, ".")
			if name[0] >= 'A' && name[0] <= 'Z' {
				return of + "." + name
			}
		}
		if !more {
			return ""
		}
	}
}
