package parquet

import (
	"runtime"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
)

// maxPage bounds a page's bytes: one has a cell whole, and a dictionary or 256 KiB beside it.
const maxPage = 64 << 20

// encoder and decoder serve all files of the process, as many at once as it has processors. They are made when the program
// starts, since what they wait on must not belong to one of testing/synctest's bubbles.
var (
	encoder = newEncoder()
	decoder = newDecoder()
)

func newEncoder() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(runtime.GOMAXPROCS(0)), zstd.WithWindowSize(1<<20), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic("parquet: options that zstd does not know: " + err.Error()) // cannot happen: they are its own
	}
	e.EncodeAll(nil, nil) // its first use makes what it waits on
	return e
}

func newDecoder() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(runtime.GOMAXPROCS(0)), zstd.WithDecoderMaxMemory(maxPage), zstd.WithDecoderLowmem(true))
	if err != nil {
		panic("parquet: options that zstd does not know: " + err.Error()) // cannot happen: they are its own
	}
	return d
}

// codec compresses pages for parquet-go, whose own makes coders as it goes, of any size.
type codec struct{}

func (codec) String() string                            { return "ZSTD" }
func (codec) CompressionCodec() format.CompressionCodec { return format.Zstd }
func (codec) Encode(dst, src []byte) ([]byte, error)    { return encoder.EncodeAll(src, dst[:0]), nil }
func (codec) Decode(dst, src []byte) ([]byte, error)    { return decoder.DecodeAll(src, dst[:0]) }
