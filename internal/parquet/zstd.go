package parquet

import (
	"runtime"

	"github.com/klauspost/compress/zstd"
)

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
