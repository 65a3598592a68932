package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/failure"
)

// ManifestFormat names the form of a manifest; another form gets another name.
const ManifestFormat = "almanac.snapshot.manifest/1"

// MaxChunks bounds a month's chunks. MaxManifest bounds a manifest's bytes: it has room for so many chunks with the longest
// keys, and is held in memory twice where it is written.
const (
	MaxChunks   = 50_000
	MaxManifest = 48 << 20
)

// Manifest says all about one version of a month. It lies beside the chunks under a name that holds the SHA-256 of its
// bytes, and the run and the current pointer hold that name: who trusts the table can trust every byte of the month.
//
// Its bytes are canonical: the fields below in this order, maps by their keys, no white space, no time of its own, so
// that validating the same chunks again gives the same manifest. The rows of a month are those of its chunks, one after
// another; objects below the same prefix that the manifest does not list are no part of it.
type Manifest struct {
	Format    string         `json:"format"` // ManifestFormat
	Run       string         `json:"run"`
	Workspace string         `json:"workspace"`
	Type      string         `json:"type"`
	Month     calendar.Month `json:"month"`
	Version   int            `json:"version"`
	Period    Bounds         `json:"period"`

	Definition DefinitionRef `json:"definition"`
	Source     SourceRef     `json:"source"`
	Generation int           `json:"generation"`

	Key     ManifestKeyColumn `json:"key"`
	Columns []Column          `json:"columns"` // in the order of the files
	Files   Files             `json:"files"`

	Totals      Totals          `json:"totals"`
	ComparedTo  Compared        `json:"compared_to"`
	Checks      []Check         `json:"checks"`
	Acceptances []Acceptance    `json:"acceptances,omitempty"` // those that a check needed
	Chunks      []ManifestChunk `json:"chunks"`
	Product     string          `json:"product"` // version of the product that wrote it
}

// Bounds are the month's, half open, and the zone that they were computed in.
type Bounds struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	Zone  string    `json:"zone"`
}

// DefinitionRef names the version of the definition.
type DefinitionRef struct {
	Scope
	Version int    `json:"version"`
	Hash    string `json:"sha256"`
}

// SourceRef names the source and its version: that which the first chunk was read from, and that which the control query
// saw; "" where the engine has none, and of an engine whose queries run apart the id of each one's query. Those of a single pass
// are equal.
type SourceRef struct {
	Name      string `json:"name"`
	Version   string `json:"version"`
	Validated string `json:"validated_version"`
}

// ManifestKeyColumn is the column that orders the rows.
type ManifestKeyColumn struct {
	Column string `json:"column"`
	Type   string `json:"type"` // integer, decimal or text; empty where there are no rows
}

// Files says how the chunks are written.
type Files struct {
	Format      string `json:"format"`      // parquet: columns of the types that Columns name; csv: RFC 4180, CRLF, a header in each file
	Compression string `json:"compression"` // zstd within Parquet; gzip around CSV
	Null        string `json:"null"`        // of CSV: NULL is this without quotes; an empty text is ""
}

// Totals are what the whole month has.
type Totals struct {
	Chunks int               `json:"chunks"`
	Rows   int64             `json:"rows"`
	Bytes  int64             `json:"bytes"` // of the compressed files
	Sums   map[string]string `json:"sums"`  // by column: exact digits, or the nearest float's
}

// Compared names what drift was measured against; version 0: nothing was there.
type Compared struct {
	Current       int    `json:"current_version"`
	PreviousMonth string `json:"previous_month_run,omitempty"`
}

// ManifestChunk is one file.
type ManifestChunk struct {
	Object string `json:"object"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
	Rows   int64  `json:"rows"`
	First  string `json:"first_key,omitempty"`
	Last   string `json:"last_key,omitempty"`
}

// Encode gives the manifest's canonical bytes and their SHA-256, its name.
func (m Manifest) Encode() (body []byte, hash string, err error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(m); err != nil {
		return nil, "", err
	}
	body = bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	sum := sha256.Sum256(body)
	return body, hex.EncodeToString(sum[:]), nil
}

// readManifest reads a run's manifest by its hash. Bytes that have not this hash, or that are no manifest of this run,
// are file_inconsistent.
func readManifest(ctx context.Context, objects Objects, p Period, version int, hash string) (Manifest, error) {
	var m Manifest
	key := ManifestKey(p, version, hash)
	body, size, err := objects.Open(ctx, key)
	if err != nil {
		return m, err
	}
	defer body.Close()
	if size > MaxManifest {
		return m, failure.New(failure.FileInconsistent, "the manifest %q has %d bytes; want at most %d", key, size, MaxManifest)
	}
	b, err := io.ReadAll(io.LimitReader(body, MaxManifest))
	if err != nil {
		return m, failure.Wrap(failure.FileUnavailable, err, "the manifest %q could not be read", key)
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != hash {
		return m, failure.New(failure.FileInconsistent, "the manifest %q is not the one that was recorded: its SHA-256 is %x", key, sum)
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, failure.Wrap(failure.FileInconsistent, err, "the manifest %q cannot be read", key)
	}
	if m.Format != ManifestFormat || m.Workspace != p.Workspace || m.Type != p.Type || m.Month != p.Month || m.Version != version {
		return m, failure.New(failure.FileInconsistent, "the manifest %q is a %q of %s %s %s version %d; want %q of %s %s %s version %d", key,
			m.Format, m.Workspace, m.Type, m.Month, m.Version, ManifestFormat, p.Workspace, p.Type, p.Month, version)
	}
	return m, nil
}
