package simulate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// pathText writes moves so that they can be read and given again: A and B let a call of that worker go, T lets time pass; a
// number before it says how often, one after it which of several calls.
func pathText(path []byte) string {
	var b strings.Builder
	for i := 0; i < len(path); {
		n := 1
		for i+n < len(path) && path[i+n] == path[i] {
			n++
		}
		if n > 1 {
			fmt.Fprint(&b, n)
		}
		b.WriteByte("ABT"[path[i]>>6])
		if at := path[i] & 63; at > 0 {
			fmt.Fprintf(&b, ".%d.", at)
		}
		i += n
	}
	return b.String()
}

// parsePath reads what pathText wrote.
func parsePath(text string) (path []byte, err error) {
	for i := 0; i < len(text); {
		number := func() int {
			from := i
			for i < len(text) && text[i] >= '0' && text[i] <= '9' {
				i++
			}
			n, bad := strconv.Atoi(text[from:i])
			if bad != nil {
				return 1
			}
			return n
		}
		n := number()
		side := -1
		if i < len(text) {
			side = strings.IndexByte("ABT", text[i])
		}
		if side < 0 {
			return nil, fmt.Errorf("order %q: at character %d want A, B or T", text, i+1)
		}
		i++
		code := byte(side) << 6
		if i < len(text) && text[i] == '.' {
			i++
			code |= byte(number())
			i++
		}
		path = append(path, slices.Repeat([]byte{code}, n)...)
	}
	return path, nil
}

// parseReplay reads what Replay wrote.
func parseReplay(text string) (p Pair, skew time.Duration, path []byte, err error) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 {
		return p, 0, nil, fmt.Errorf("%q: want pair/clock/order, such as \"deliver × stop/0s/3A2B\"", text)
	}
	if p, err = PairNamed(parts[0]); err != nil {
		return p, 0, nil, err
	}
	if skew, err = time.ParseDuration(parts[1]); err != nil {
		return p, 0, nil, fmt.Errorf("clock %q: want a duration, such as 0s or -5m0s", parts[1])
	}
	path, err = parsePath(parts[2])
	return p, skew, path, err
}

// told adds to a failure the order that led to it.
func (p Pair) told(err error, skew time.Duration, path []byte) error {
	f := AsFailed(err)
	if f == nil {
		return err
	}
	return &Failed{What: fmt.Sprintf("%s: %s", p.Replay(skew, path), f.What), Trace: f.Trace}
}

// Replay is what plays one order of a pair again.
func (p Pair) Replay(skew time.Duration, path []byte) string {
	return fmt.Sprintf("%s/%s/%s", p.Name, skew, pathText(path))
}

// Play plays one order of a pair, and whatever comes after it in the first way.
func (p Pair) Play(t *testing.T, skew time.Duration, path []byte) (trace []string, err error) {
	s := &search{pair: p, skew: skew, rest: map[uint64]string{}, found: Found{Ends: map[uint64]string{}}}
	err = Run(t, func(w *World) {
		defer func() { trace = w.Trace }()
		m := p.meet(w, skew)
		for _, code := range path {
			m.make(code)
		}
		for {
			moves := m.choices()
			if len(moves) == 0 {
				break
			}
			m.make(moves[0].code())
		}
		s.end(m, m.now())
	})
	return trace, err
}
