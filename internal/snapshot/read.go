package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"almanac/internal/failure"
	"almanac/internal/schema"
)

// Reader reads what was published. Everything that it hands out hangs on the table: the pointer or the run names the
// manifest by its hash, the manifest the chunks by theirs.
type Reader struct {
	Ledger  Reading
	Objects Objects
}

// Current is the manifest of a period's current version. ErrNotFound: nothing is published.
func (r Reader) Current(ctx context.Context, p Period) (Manifest, error) {
	pointer, err := r.Ledger.Pointer(ctx, p)
	if err != nil {
		return Manifest{}, err
	}
	if pointer.Version == 0 {
		return Manifest{}, fmt.Errorf("%s %s %s has no published version: %w", p.Workspace, p.Type, p.Month, ErrNotFound)
	}
	return readManifest(ctx, r.Objects, p, pointer.Version, pointer.Manifest)
}

// Version is the manifest of any published version. ErrNotFound: there is no such version, or it is not published.
func (r Reader) Version(ctx context.Context, p Period, version int) (Manifest, error) {
	run, err := r.Ledger.Run(ctx, schema.SnapshotID(p.Workspace, p.Type, p.Month.String(), version))
	if err != nil {
		return Manifest{}, err
	}
	if run.State != Published {
		return Manifest{}, fmt.Errorf("version %d of %s %s %s is %s, not published: %w", version, p.Workspace, p.Type, p.Month, run.State, ErrNotFound)
	}
	return readManifest(ctx, r.Objects, p, version, run.Manifest())
}

// Rows streams a version's rows in the order of their keys. Each chunk's digest is checked by the time its last row was
// read: a chunk with other bytes ends the rows with file_inconsistent, never with io.EOF.
func (r Reader) Rows(m Manifest) *MonthRows { return &MonthRows{objects: r.Objects, manifest: m} }

// MonthRows iterates over a version's rows.
type MonthRows struct {
	objects  Objects
	manifest Manifest
	next     int // chunk
	open     *chunkReader
	err      error
}

// Columns are the columns of every row.
func (m *MonthRows) Columns() []Column { return m.manifest.Columns }

// Next is the next row, valid until the one after, or io.EOF.
func (m *MonthRows) Next(ctx context.Context) ([]Cell, error) {
	for m.err == nil {
		if m.open == nil {
			if m.next == len(m.manifest.Chunks) {
				m.err = io.EOF
				break
			}
			if m.open, m.err = openChunk(ctx, m.objects, m.manifest, m.next); m.err != nil {
				break
			}
			m.next++
		}
		row, err := m.open.row()
		if err == nil {
			return row, nil
		}
		m.open.close()
		m.open = nil
		if !errors.Is(err, io.EOF) {
			m.err = err
		}
	}
	return nil, m.err
}

// Close may be called at any time.
func (m *MonthRows) Close() error {
	if m.open != nil {
		m.open.close()
		m.open = nil
	}
	if m.err == nil {
		m.err = failure.New(failure.FileUnavailable, "the rows were closed before they were read to their end")
	}
	return nil
}

// chunkReader reads one chunk's rows and checks its bytes on the way.
type chunkReader struct {
	chunk ManifestChunk
	body  io.ReadCloser
	bytes *hashed
	file  fileReader
	rows  int64
}

// fileReader reads the rows of one kind of file.
type fileReader interface {
	// next is the next row, valid until the one after, or io.EOF.
	next() ([]Cell, error)
	close()
}

func openChunk(ctx context.Context, objects Objects, m Manifest, i int) (*chunkReader, error) {
	c := m.Chunks[i]
	if _, known := forms[FileFormat(m.Files.Format)]; !known {
		return nil, failure.New(failure.FileInconsistent, "the manifest of %s says that its files are %q; this version reads parquet and csv", m.Run, failure.Cut(m.Files.Format, 60))
	}
	body, size, err := objects.Open(ctx, c.Object)
	if err != nil {
		return nil, err
	}
	r := &chunkReader{chunk: c, body: body, bytes: &hashed{from: body, hash: sha256.New()}}
	if size != c.Bytes {
		r.close()
		return nil, r.other(nil, "it has %d bytes, recorded are %d", size, c.Bytes)
	}
	if FileFormat(m.Files.Format) == Parquet {
		r.file, err = r.parquet(m.Columns)
	} else {
		r.file, err = r.csv(m.Columns)
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// row is the next row; io.EOF comes only once every byte was found to be the recorded one.
func (r *chunkReader) row() ([]Cell, error) {
	row, err := r.file.next()
	switch {
	case err == nil:
		r.rows++
		return row, nil
	case !errors.Is(err, io.EOF):
		return nil, r.failed(err)
	}
	if err := r.digest(); err != nil {
		return nil, err
	}
	if r.rows != r.chunk.Rows {
		return nil, r.other(nil, "it has %d rows, recorded are %d", r.rows, r.chunk.Rows)
	}
	return nil, io.EOF
}

// digest reads what may be left and compares the digest of all bytes.
func (r *chunkReader) digest() error {
	if _, err := io.Copy(io.Discard, r.bytes); err != nil {
		return r.failed(err)
	}
	if sum := hex.EncodeToString(r.bytes.hash.Sum(nil)); sum != r.chunk.SHA256 {
		return r.other(nil, "its SHA-256 is %s, recorded is %s", sum, r.chunk.SHA256)
	}
	return nil
}

func (r *chunkReader) close() {
	if r.file != nil {
		r.file.close()
	}
	_ = r.body.Close()
}

// failed tells a store that could not be read from bytes that make no sense.
func (r *chunkReader) failed(err error) error {
	if r.bytes.err != nil {
		return failure.Wrap(failure.FileUnavailable, r.bytes.err, "the chunk %q could not be read", r.chunk.Object)
	}
	return r.other(err, "it cannot be read as the rows that were written: %v", err)
}

func (r *chunkReader) other(cause error, format string, args ...any) error {
	return failure.Wrap(failure.FileInconsistent, cause, "the chunk %q is not the one that was recorded: %s", r.chunk.Object, fmt.Sprintf(format, args...))
}

// hashed hashes what is read through it and keeps the error of its source.
type hashed struct {
	from io.Reader
	hash hash.Hash
	err  error
}

func (h *hashed) Read(p []byte) (int, error) {
	n, err := h.from.Read(p)
	h.hash.Write(p[:n])
	if err != nil && !errors.Is(err, io.EOF) {
		h.err = err
	}
	return n, err
}

// Verification is what Verify found.
type Verification struct {
	Chunks int        `json:"chunks"`
	Bytes  int64      `json:"bytes"`
	Wrong  []BadChunk `json:"wrong,omitempty"` // the first MaxBad of them
	Bad    int        `json:"bad"`             // how many there are
}

// BadChunk is a chunk that is not what the manifest says.
type BadChunk struct {
	Object string `json:"object"`
	Why    string `json:"why"`
}

// MaxBad is how many bad chunks a verification names.
const MaxBad = 20

// Verify reads every chunk of a version and compares its bytes with its recorded digest, one after another, holding none of
// them. A chunk that is missing or other is a finding; a store that does not answer is an error.
func (r Reader) Verify(ctx context.Context, m Manifest) (Verification, error) {
	var v Verification
	for _, c := range m.Chunks {
		why, err := r.verify(ctx, c)
		if err != nil {
			return v, err
		}
		v.Chunks++
		v.Bytes += c.Bytes
		if why != "" {
			if v.Bad++; len(v.Wrong) < MaxBad {
				v.Wrong = append(v.Wrong, BadChunk{Object: c.Object, Why: why})
			}
		}
	}
	return v, nil
}

func (r Reader) verify(ctx context.Context, c ManifestChunk) (why string, err error) {
	body, _, err := r.Objects.Open(ctx, c.Object)
	if failure.Is(err, failure.FileInconsistent) {
		return "it is not there", nil
	}
	if err != nil {
		return "", err
	}
	defer body.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, body)
	if err != nil {
		return "", failure.Wrap(failure.FileUnavailable, err, "the chunk %q could not be read", c.Object)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != c.SHA256 || n != c.Bytes {
		return fmt.Sprintf("it has %d bytes with the SHA-256 %s; recorded are %d with %s", n, got, c.Bytes, c.SHA256), nil
	}
	return "", nil
}
