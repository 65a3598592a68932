package artifact

import (
	"io"
	"sync"
)

// aside hands blocks to a writer on a goroutine of its own, so that what the writer does with them, such as compressing,
// goes on beside the making of the next block. Until finish has returned nobody else may use the writer.
type aside struct {
	w          io.Writer
	free, full chan []byte
	ended      chan struct{} // closed after the last block, or at the first error
	err        error         // valid once ended is closed
	once       sync.Once
}

// startAside begins; n blocks go round, of which the caller makes the first.
func startAside(w io.Writer, n int) *aside {
	a := &aside{w: w, free: make(chan []byte, n), full: make(chan []byte, n), ended: make(chan struct{})}
	for range n - 1 {
		a.free <- nil
	}
	go a.run()
	return a
}

func (a *aside) run() {
	defer close(a.ended)
	for b := range a.full {
		if _, a.err = a.w.Write(b); a.err != nil {
			return
		}
		a.free <- b[:0]
	}
}

// pass hands a block over and returns an empty one, or the error that ended the writer.
func (a *aside) pass(b []byte) ([]byte, error) {
	select {
	case a.full <- b:
	case <-a.ended:
		return nil, a.err
	}
	select {
	case next := <-a.free:
		return next, nil
	case <-a.ended:
		return nil, a.err
	}
}

// finish waits until all blocks are written, and returns the error that ended the writer. It may be called again.
func (a *aside) finish() error {
	a.once.Do(func() { close(a.full) })
	<-a.ended
	return a.err
}
