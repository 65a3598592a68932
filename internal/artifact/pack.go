package artifact

import (
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// packer is one way to pack a file.
type packer struct {
	mediaType string
	extension string // behind the kind's
	free      *sync.Pool
}

// compressor is what gzip and zstd have in common. After Reset it is as new.
type compressor interface {
	io.WriteCloser
	Reset(io.Writer)
}

// packers pack with the fastest level: the next one takes a third more time, and makes files that are a few percent smaller.
// Equal rows make equal bytes: no header has a time or a name, and nothing is packed on several goroutines.
var packers = map[string]packer{
	"gzip": {"application/gzip", ".gz", pool(func() compressor { // RFC 6713
		zip, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
		return known(zip, err)
	})},
	"zstd": {"application/zstd", ".zst", pool(func() compressor { // RFC 8878, section 7
		// A file without a row has a frame as well: no bytes at all are no zstd file. The window is what a reader needs in memory.
		zip, err := zstd.NewWriter(io.Discard, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithZeroFrames(true))
		return known(zip, err)
	})},
}

func known[C compressor](c C, err error) compressor {
	if err != nil {
		panic("artifact: a setting that the compressor does not know: " + err.Error()) // cannot happen: they are its own
	}
	return c
}

// pool keeps compressors from file to file: each holds a megabyte or more.
func pool(make func() compressor) *sync.Pool {
	return &sync.Pool{New: func() any { return &packing{to: make(), b: *wholeBlocks.New().(*[]byte)} }}
}

// packing packs one file after another. It gathers what its compressor gives, hundreds of bytes at a time, in a block.
type packing struct {
	to    compressor
	b     []byte
	store func([]byte) error
	free  *sync.Pool
}

// begin begins a file whose packed bytes go to store.
func (p packer) begin(store func([]byte) error) *packing {
	c := p.free.Get().(*packing)
	c.store, c.free = store, p.free
	c.to.Reset(c)
	return c
}

// pack packs a block; an error is store's.
func (c *packing) pack(b []byte) error {
	_, err := c.to.Write(b)
	return err
}

// Write takes packed bytes from the compressor.
func (c *packing) Write(p []byte) (int, error) {
	if len(c.b)+len(p) > blockSize {
		if err := c.flush(); err != nil {
			return 0, err
		}
	}
	c.b = append(c.b, p...)
	return len(p), nil
}

func (c *packing) flush() error {
	err := c.store(c.b)
	c.b = c.b[:0]
	return err
}

// end ends the file; nothing of it is held any more.
func (c *packing) end() error {
	if err := c.to.Close(); err != nil {
		return err
	}
	return c.flush()
}

// release makes the packing ready for another file, whether this one has ended or not.
func (c *packing) release() {
	c.b, c.store = c.b[:0], nil
	c.to.Reset(io.Discard)
	c.free.Put(c)
}
