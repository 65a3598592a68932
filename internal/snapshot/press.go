package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"path"

	"github.com/klauspost/compress/gzip"

	"almanac/internal/artifact"
)

// pressBlocks is how many blocks of CSV, of about 1 MiB each, may wait for the press.
const pressBlocks = 4

// press is the second half of a scan, on a goroutine of its own: it compresses, stores and commits one chunk after another,
// in their order, while the source's rows of the next ones are read and written as CSV. So neither the end of a
// compression nor the time that an object and its record take to be stored holds the source up.
type press struct {
	w   *work
	run Run // its cursor moves with each commit

	parcels chan *parcel
	free    chan []byte   // buffers that no block is in
	ended   chan struct{} // closed once the press has stopped
	err     error         // why it stopped early; valid once ended is closed
}

// parcel is one chunk on its way to the press. It is an io.Writer of the chunk's CSV.
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
	p := &press{w: w, run: w.run, parcels: make(chan *parcel, 1), free: make(chan []byte, pressBlocks), ended: make(chan struct{})}
	for range pressBlocks {
		p.free <- nil
	}
	go p.work(ctx)
	return p
}

// begin puts a chunk before the press; false where the press has stopped.
func (p *press) begin(key string) (*parcel, bool) {
	c := &parcel{press: p, key: key, blocks: make(chan []byte, pressBlocks)}
	select {
	case p.parcels <- c:
		return c, true
	case <-p.ended:
		return nil, false
	}
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

func (p *press) work(ctx context.Context) {
	defer close(p.ended)
	zip, err := gzip.NewWriterLevel(io.Discard, compression)
	if err != nil {
		p.err = err
		return
	}
	for c := range p.parcels {
		if p.err = p.store(ctx, zip, c); p.err != nil {
			return
		}
		if p.err = p.w.Ledger.Commit(ctx, p.run, c.chunk, c.to, p.w.Clocks.Wall()); p.err != nil {
			return
		}
		p.run.Cursor = c.to
		p.w.Count("snapshot_rows", int(c.chunk.Rows), "", string(p.run.Mode))
	}
}

// store writes a chunk's object, and notes what only its bytes tell. Its header has neither time nor name: equal rows give
// equal bytes.
func (p *press) store(ctx context.Context, zip *gzip.Writer, c *parcel) error {
	out := &hashedWriter{hash: sha256.New()}
	err := p.w.Objects.Write(ctx, c.key, chunkType, artifact.ContentDisposition(path.Base(c.key)), func(to io.Writer) error {
		out.to = to
		zip.Reset(out)
		for b := range c.blocks {
			if _, err := zip.Write(b); err != nil {
				return err
			}
			p.free <- b // has room for every buffer
		}
		if c.err != nil {
			return c.err
		}
		return zip.Close()
	})
	if err != nil {
		return err
	}
	c.chunk.Object, c.chunk.SHA256, c.chunk.Bytes = c.key, hex.EncodeToString(out.hash.Sum(nil)), out.bytes
	return nil
}
