package sqlite

import (
	"context"
	"sync/atomic"

	"almanac/internal/source"
)

// view is one version of a file. A file that is in use never changes, and it is opened as immutable: whatever number of
// queries is opened on it, all of them see the same rows.
type view struct {
	path, version string
	limits        source.Limits // where a query has none
	late          *atomic.Int64
	release       func()
}

var (
	_ source.Viewer = (*File)(nil)
	_ source.Viewer = (*fetched)(nil)
)

func (v *view) Open(ctx context.Context, q source.Query) (source.Rows, error) {
	return open(ctx, v.path, q, q.Limits.Or(v.limits).Or(source.Defaults), func() {}, v.late)
}

func (v *view) Version() string { return v.version }

// ByteOrder leaves numbers as they are: https://sqlite.org/datatype3.html#collating_sequences
func (v *view) ByteOrder(column string, _ source.Type) string { return column + " collate binary" }

func (v *view) Close() error { v.release(); return nil }

// View holds the file as it is; its version is not known.
func (f *File) View(context.Context) (source.View, error) {
	if err := checkFile(f.Path); err != nil {
		return nil, err
	}
	return &view{path: f.Path, limits: f.Defaults, late: new(atomic.Int64), release: func() {}}, nil
}
