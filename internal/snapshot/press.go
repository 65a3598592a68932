package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"path"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"almanac/internal/artifact"
)

// pressBlocks is how many blocks of a file, of about 1 MiB each, may wait for the press; pressChunks how many chunks may be
// under way, the one whose rows are read among them.
const (
	pressBlocks = 4
	pressChunks = 3
)

// press is the second half of a scan, on a goroutine of its own: it compresses CSV, stores and commits one chunk after
// another, in their order, while the source's rows of the next ones are read and written as a file. So neither the end of
// a compression nor the time that an object and its record take to be stored holds the source up.
type press struct {
	w    *work
	form form
	run  Run // its cursor moves with each commit

	turns   chan struct{} // one for each chunk that may be begun
	parcels chan *parcel
	free    chan []byte   // buffers that no block is in
	ended   chan struct{} // closed once the press has stopped
	err     error         // why it stopped early; valid once ended is closed

	mu      sync.Mutex
	done    int           // chunks committed
	longest time.Duration // that one of them took the press
}

// parcel is one chunk on its way to the press. It is an io.Writer of the chunk's file, before gzip.
type parcel struct {
	press  *press
	key    string
	blocks chan []byte // closed after the last one

	// set before blocks is closed
	chunk Chunk // without what only the compressed bytes tell
	to    Cursor
	err   error // the chunk's rows broke off: nothing of it may be stored
}

func (w *work) startPress(ctx context.Context) *press {
	p := &press{w: w, form: w.def.Format.form(), run: w.run, turns: make(chan struct{}, pressChunks), parcels: make(chan *parcel, pressChunks), free: make(chan []byte, pressBlocks), ended: make(chan struct{})}
	for range pressBlocks {
		p.free <- nil
	}
	p.turns <- struct{}{} // the others come once it is known how long a chunk takes
	go p.work(ctx)
	return p
}

// turn waits until another chunk may be begun; false where the press has stopped.
func (p *press) turn() bool {
	select {
	case <-p.turns:
		return true
	case <-p.ended:
		return false
	}
}

// needs is how long the chunks that are under way and one more take the press, begun being those before.
func (p *press) needs(begun int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Duration(begun-p.done+1) * p.longest
}

// begin puts a chunk before the press, once it is its turn.
func (p *press) begin(key string) *parcel {
	c := &parcel{press: p, key: key, blocks: make(chan []byte, pressBlocks)}
	p.parcels <- c // has room for every turn
	return c
}

// finish waits for the chunks that are under way, and returns why the press stopped early.
func (p *press) finish() error {
	close(p.parcels)
	<-p.ended
	return p.err
}

var errPressStopped = errors.New("the press has stopped")

// Write copies a block for the press.
func (c *parcel) Write(b []byte) (int, error) {
	select {
	case buffer := <-c.press.free:
		c.blocks <- append(buffer[:0], b...) // has room for every buffer
		return len(b), nil
	case <-c.press.ended:
		return 0, errPressStopped
	}
}

// close ends the chunk: whole, or broken off where err is not nil.
func (c *parcel) close(chunk Chunk, to Cursor, err error) {
	c.chunk, c.to, c.err = chunk, to, err
	close(c.blocks)
}

// compressors are kept from scan to scan: each holds more than half a megabyte.
var compressors = sync.Pool{New: func() any {
	zip, err := gzip.NewWriterLevel(io.Discard, compression)
	if err != nil {
		panic("snapshot: a level that gzip does not know: " + err.Error()) // cannot happen: it is one of its own
	}
	return zip
}}

func (p *press) work(ctx context.Context) {
	defer close(p.ended)
	zip := compressors.Get().(*gzip.Writer)
	defer func() {
		zip.Reset(io.Discard) // it holds on to nothing of this scan
		compressors.Put(zip)
	}()
	for c := range p.parcels {
		began := p.w.Clocks.Wall()
		if p.err = p.store(ctx, zip, c); p.err != nil {
			return
		}
		if p.err = p.w.Ledger.Commit(ctx, p.run, c.chunk, c.to, p.w.Clocks.Wall()); p.err != nil {
			return
		}
		p.run.Cursor = c.to
		p.mu.Lock()
		p.done++
		p.longest = max(p.longest, p.w.Clocks.Wall().Sub(began))
		p.mu.Unlock()
		more := 1
		if p.done == 1 {
			more = pressChunks
		}
		for range more {
			p.turns <- struct{}{} // has room for every turn
		}
		p.w.Count("snapshot_rows", int(c.chunk.Rows), "", string(p.run.Mode))
	}
}

// unzipped passes bytes on as they are.
type unzipped struct{ io.Writer }

func (unzipped) Close() error { return nil }

// store writes a chunk's object, and notes what only its bytes tell. Its header has neither time nor name: equal rows give
// equal bytes.
func (p *press) store(ctx context.Context, zip *gzip.Writer, c *parcel) error {
	out := &hashedWriter{hash: sha256.New()}
	err := p.w.Objects.Write(ctx, c.key, p.form.mediaType, artifact.ContentDisposition(path.Base(c.key)), func(to io.Writer) error {
		out.to = to
		var file io.WriteCloser = unzipped{out}
		if p.form.gzip {
			zip.Reset(out)
			file = zip
		}
		for b := range c.blocks {
			if _, err := file.Write(b); err != nil {
				return err
			}
			p.free <- b // has room for every buffer
		}
		if c.err != nil {
			return c.err
		}
		return file.Close()
	})
	if err != nil {
		return err
	}
	c.chunk.Object, c.chunk.SHA256, c.chunk.Bytes = c.key, hex.EncodeToString(out.hash.Sum(nil)), out.bytes
	return nil
}
