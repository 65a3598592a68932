package snapshot

import (
	"context"
	"io"

	"almanac/internal/source"
)

// Sources holds a named source at its present version, if the workspace may use it.
type Sources interface {
	View(ctx context.Context, name, workspace string) (source.View, error)
}

// Objects keeps the files of snapshots. Failures: file_unavailable, file_inconsistent.
type Objects interface {
	// Write streams what produce writes into a new object; on any error nothing is left published. An object that is
	// there with the very same bytes is success.
	Write(ctx context.Context, key, mediaType, disposition string, produce func(io.Writer) error) error
	// Open reads an object, whose size in bytes comes with it. The caller closes it.
	Open(ctx context.Context, key string) (io.ReadCloser, int64, error)
	// List calls each for the objects whose keys begin with prefix, in the order of their keys, until each returns an
	// error, which List returns.
	List(ctx context.Context, prefix string, each func(key string, size int64) error) error
}
