package snapshot

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"

	"github.com/klauspost/compress/gzip"

	"almanac/internal/source"
)

// compression is gzip's level: the quickest, a third of the time of the default one for files a tenth larger.
const compression = gzip.BestSpeed

const manifestType = "application/json"

// RunPrefix begins the key of every object of a run. Nothing else lies below it.
func RunPrefix(p Period, version int) string {
	return path.Join("snapshots", p.Workspace, p.Type, p.Month.String(), fmt.Sprintf("v%04d", version)) + "/"
}

// GenerationPrefix begins the keys of the chunks of one generation.
func GenerationPrefix(p Period, version, generation int) string {
	return RunPrefix(p, version) + fmt.Sprintf("g%d/", generation)
}

// chunkKey is where a chunk lies. It holds a token of the invocation, so that two that write the same chunk, frozen
// twins or a try and its repetition, never meet; whose record is committed decides which object is the month's.
func chunkKey(r Run, f FileFormat, chunk int, token string) string {
	return GenerationPrefix(r.Period, r.Version, r.Generation) + fmt.Sprintf("chunk-%08d-%s%s", chunk, token, f.form().extension)
}

// ManifestKey is where a run's manifest of this SHA-256 lies.
func ManifestKey(p Period, version int, hash string) string {
	return RunPrefix(p, version) + "manifest-" + hash + ".json"
}

// cutter cuts one ordered result into chunks: the source is read once for as many chunks as are wanted.
type cutter struct {
	rows    source.Rows
	pending []source.Value // read ahead, and valid until the next row is asked for
	end     error          // io.EOF or a failure, once there is one
}

// next is the next row.
func (c *cutter) next(ctx context.Context) ([]source.Value, error) {
	if row := c.pending; row != nil {
		c.pending = nil
		return row, nil
	}
	if c.end != nil {
		return nil, c.end
	}
	row, err := c.rows.Next(ctx)
	if err != nil {
		c.end = err
		return nil, err
	}
	return row, nil
}

// more reports whether there is another row.
func (c *cutter) more(ctx context.Context) (bool, error) {
	if c.pending != nil {
		return true, nil
	}
	row, err := c.next(ctx)
	switch {
	case errors.Is(err, io.EOF):
		return false, nil
	case err != nil:
		return false, err
	}
	c.pending = row
	return true, nil
}

// window is the rows of one chunk: at most left of them, each counted as it passes.
type window struct {
	*cutter
	tally *tally
	left  int64 // rows; below 0: as many as there are
}

var _ source.Rows = (*window)(nil)

func (w *window) Columns() []source.Column { return w.rows.Columns() }
func (w *window) Close() error             { return nil }

func (w *window) Next(ctx context.Context) ([]source.Value, error) {
	if w.left == 0 {
		return nil, io.EOF
	}
	row, err := w.next(ctx)
	if err != nil {
		return nil, err
	}
	w.left--
	return row, w.tally.add(row)
}

// hashedWriter hashes and counts what is written.
type hashedWriter struct {
	to    io.Writer
	hash  hash.Hash
	bytes int64
}

func (d *hashedWriter) Write(p []byte) (int, error) {
	n, err := d.to.Write(p)
	d.hash.Write(p[:n])
	d.bytes += int64(n)
	return n, err
}
