package simulate

import (
	"testing/synctest"
	"time"
)

// meeting is one world in which a pair meets.
type meeting struct {
	*World
	*state
	sides [2]*Worker
	moved [2]int
	path  []byte
}

// meet brings a world to where both workers have started.
func (p Pair) meet(w *World, skew time.Duration) *meeting {
	m := &meeting{World: w, state: observeStates(w)}
	w.Company()
	w.Workers = 2
	a, b := p.New(w)
	w.SkewOf = func(string) time.Duration { return skew }
	m.sides[0] = a()
	w.SkewOf = nil
	m.sides[1] = b()
	m.follow(m.sides[:]...)
	synctest.Wait()
	w.checkChanged()
	return m
}

// moves lists what can happen next; none: both workers are over.
func (m *meeting) choices() (out []choice) {
	synctest.Wait()
	waiting, idle := m.waiting(), false
	for i, k := range m.sides {
		n := 0
		for _, c := range waiting {
			if c.Worker == k {
				out = append(out, choice{side: i, n: n, touches: touches(c), name: c.Name + " " + c.Key})
				n++
			}
		}
		k.mu.Lock()
		idle = idle || n == 0 && !k.ended
		k.mu.Unlock()
	}
	if idle {
		out = append(out, choice{side: timePasses, touches: touched{all: true}})
	}
	return out
}

// make lets one thing happen.
func (m *meeting) make(code byte) {
	synctest.Wait()
	m.path = append(m.path, code)
	side, n := int(code>>6), int(code&63)
	if side == timePasses {
		m.wait()
		return
	}
	for _, c := range m.waiting() {
		if c.Worker != m.sides[side] {
			continue
		}
		if n--; n < 0 {
			m.moved[side]++
			m.asked(c)
			m.letGo(c)
			return
		}
	}
	m.Failf("there is no move %s", pathText(m.path))
}

// wait lets time pass until a worker that waits goes on, or is over.
func (m *meeting) wait() {
	select { // a signal of what has been seen already
	case <-m.arrived:
	default:
	}
	select {
	case <-m.arrived:
	case <-time.After(DeliverTime):
		m.Failf("nothing goes on by itself within %s", DeliverTime)
	}
	synctest.Wait()
	m.checkChanged()
}

// now is the state that decides how the meeting goes on.
func (m *meeting) now() uint64 { return m.whole(m.sides[:]...) }
