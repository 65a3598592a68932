package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"sync"

	"almanac/internal/failure"
	"almanac/internal/source"
)

// Result is what a run records of its file.
type Result struct {
	Rows   int64 // without the header
	Bytes  int64
	SHA256 string // lower-case hexadecimal, of the bytes that were written
}

const (
	blockSize  = 1 << 20
	firstBlock = 64 << 10 // so that a small file costs little memory
	blocks     = 3        // one being filled, one waiting, one being hashed and written
)

// Write turns all rows into a file in w, which receives blocks of about 1 MiB from one other goroutine; when Write
// returns, that goroutine has ended, and so has an encoder's own. It does not close rows.
//
// A file that is packed is encoded on the caller's goroutine and packed on the other one. Result and maxBytes speak of the
// bytes that are stored, which are the packed ones; what rows may hold is bounded by the limits of their source.
//
// An error of rows is returned as it is. An error of w is file_unavailable unless it carries a failure of its own.
// More than maxBytes, if that is above zero, is file_too_large; w has received no more than maxBytes then. After any
// error the bytes in w are worthless.
func Write(ctx context.Context, rows source.Rows, f Format, w io.Writer, maxBytes int64) (Result, error) {
	if errs := f.Validate(); len(errs) > 0 {
		e := errs[0]
		return Result{}, failure.New(failure.FileUnsupported, "format.%s is %q; it must be %s", e.Field, failure.Cut(e.Value, 60), e.Want)
	}
	return write(ctx, rows, w, f.Compression, maxBytes, func(o *out) encoder { return kinds[f.Kind].encoder(f, o) })
}

func write(ctx context.Context, rows source.Rows, w io.Writer, compression string, maxBytes int64, start func(*out) encoder) (Result, error) {
	s := startSink(w, compression, maxBytes)
	count, err := encode(ctx, rows, s, start)
	if failed := s.finish(err == nil); failed != nil && (err == nil || errors.Is(err, errSink)) {
		err = failed
	}
	if err != nil {
		return Result{}, err
	}
	return Result{Rows: count, Bytes: s.bytes, SHA256: hex.EncodeToString(s.hash.Sum(nil))}, nil
}

// encoder turns rows into the bytes of one kind of file, which it puts into an out.
type encoder interface {
	begin(columns []source.Column) error
	// row takes one row, whose cells are valid until it returns.
	row(cells []source.Value) error
	// end closes the file, after the last row.
	end() error
}

// stopper is an encoder with a goroutine that puts bytes into the out. When stop returns it has ended, after whatever
// error.
type stopper interface{ stop() }

// encode drains rows into the sink.
func encode(ctx context.Context, rows source.Rows, s *sink, start func(*out) encoder) (count int64, err error) {
	o := &out{sink: s, b: (<-s.free)[:0], full: firstBlock}
	e := start(o)
	if s, ok := e.(stopper); ok {
		defer s.stop()
	}
	if err := e.begin(rows.Columns()); err != nil {
		return 0, err
	}
	for {
		row, err := rows.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return count, err
		}
		if err := e.row(row); err != nil {
			return count, err
		}
		count++
	}
	if err := e.end(); err != nil {
		return count, err
	}
	return count, s.hand(o.b)
}

// out is where an encoder puts its bytes: it appends to b and calls more wherever b may have become full, or writes.
type out struct {
	sink *sink
	b    []byte
	full int
}

// more hands b over if it is full.
func (o *out) more() (err error) {
	if len(o.b) < o.full {
		return nil
	}
	o.b, err = o.sink.pass(o.b)
	o.full = blockSize
	return err
}

// fit hands b over if it is full, and returns what to append to.
func (o *out) fit(b []byte) ([]byte, error) {
	if len(b) < o.full {
		return b, nil
	}
	o.b = b
	err := o.more()
	return o.b, err
}

// Write takes bytes from an encoder that does not append.
func (o *out) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		take := min(len(p)-n, o.full-len(o.b))
		o.b = append(o.b, p[n:n+take]...)
		n += take
		err = o.more()
	}
	return n, err
}

// errSink tells encode to end; sink.finish has the reason.
var errSink = errors.New("the file cannot be written any further")

// sink packs, hashes and writes full blocks while the next one is filled.
type sink struct {
	w          io.Writer
	packing    string // a key of packers, or "" for none
	whole      bool   // the last block has come, so that the packed file may end; valid once full is closed
	max        int64
	hash       hash.Hash
	bytes      int64
	free, full chan []byte
	ended      chan struct{} // closed after the last block, or at the first error
	err        error         // valid once ended is closed
}

func startSink(w io.Writer, packing string, max int64) *sink {
	s := &sink{w: w, packing: packing, max: max, hash: sha256.New(), free: make(chan []byte, blocks), full: make(chan []byte, blocks), ended: make(chan struct{})}
	s.free <- make([]byte, 0, firstBlock+firstBlock/8)
	for range blocks - 1 {
		s.free <- nil
	}
	go s.run()
	return s
}

func (s *sink) run() {
	defer close(s.ended)
	take := s.store
	if s.packing != "" {
		p := packers[s.packing].begin(s.store)
		defer p.release()
		take = p.pack
		defer func() {
			if s.err == nil && s.whole {
				s.err = p.end()
			}
		}()
	}
	for b := range s.full {
		if s.err = take(b); s.err != nil {
			return
		}
		if cap(b) > 4*blockSize || cap(b) < blockSize { // one giant cell must not keep its memory
			b = nil
		}
		s.free <- b[:0]
	}
}

// store writes bytes as they are stored.
func (s *sink) store(b []byte) error {
	if s.max > 0 && s.bytes+int64(len(b)) > s.max {
		return failure.New(failure.FileTooLarge, "the file passes its limit of %d bytes: narrow the query, or raise limits.bytes", s.max)
	}
	s.bytes += int64(len(b))
	s.hash.Write(b)
	n, err := s.w.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	var own *failure.Failure
	if err == nil || errors.As(err, &own) {
		return err
	}
	return failure.Wrap(failure.FileUnavailable, err, "the file could not be written")
}

// pass hands a block over and returns an empty one.
func (s *sink) pass(b []byte) ([]byte, error) {
	if err := s.hand(b); err != nil {
		return nil, err
	}
	select {
	case next := <-s.free:
		if next == nil {
			next = *wholeBlocks.Get().(*[]byte)
		}
		return next, nil
	case <-s.ended:
		return nil, errSink
	}
}

// hand hands a block over.
func (s *sink) hand(b []byte) error {
	select {
	case s.full <- b:
		return nil
	case <-s.ended:
		return errSink
	}
}

// wholeBlocks are blocks of a whole size that no file is written with: who writes many files, such as the chunks of a
// month, need not have memory cleared for each.
var wholeBlocks = sync.Pool{New: func() any { b := make([]byte, 0, blockSize+blockSize/8); return &b }}

// finish waits for the blocks that are under way, and returns the error that ended the sink. A file that is not whole is
// not given the end of a packed one, so that nobody takes it for whole.
func (s *sink) finish(whole bool) error {
	s.whole = whole
	close(s.full)
	<-s.ended
	for {
		select {
		case b := <-s.free:
			if cap(b) >= blockSize {
				wholeBlocks.Put(&b)
			}
			continue
		default:
		}
		return s.err
	}
}
