package snapshot

import (
	"context"
	"fmt"
	"io"

	"almanac/internal/artifact"
	"almanac/internal/failure"
	"almanac/internal/parquet"
	"almanac/internal/source"
)

// form is what depends on how a month's files are written.
type form struct {
	files     Files
	extension string
	mediaType string
	gzip      bool // the press compresses what the writer writes
}

var forms = map[FileFormat]form{
	CSV:     {Files{Format: "csv", Compression: "gzip"}, ".csv.gz", "application/gzip", true},
	Parquet: {Files{Format: "parquet", Compression: "zstd"}, ".parquet", "application/vnd.apache.parquet", false},
}

// form is that of a definition's files.
func (f FileFormat) form() form {
	if f != Parquet {
		f = CSV
	}
	return forms[f]
}

// Extension is how the names of a manifest's files end.
func (f Files) Extension() string { return FileFormat(f.Format).form().extension }

// csvFormat has exact text, since programs read it.
var csvFormat = artifact.Format{Kind: "csv", Exact: true}

// write writes the rows of one file. Of Parquet, the first file of a month decides what the columns of all are.
func (f FileFormat) write(ctx context.Context, to io.Writer, rows source.Rows, sh *shape, chunk int, maxBytes int64) error {
	if f != Parquet {
		_, err := artifact.Write(ctx, rows, csvFormat, to, maxBytes)
		return err
	}
	_, decided, err := artifact.WriteParquet(ctx, rows, sh.file, to, maxBytes)
	if failure.Is(err, failure.FileUnsupported) {
		return failure.New(failure.FileUnsupported, "chunk %d, %s; all chunks of a month have the types of the first one, and checks.types can name them", chunk, failure.From(err).Message)
	}
	if err != nil {
		return err
	}
	for i, c := range decided {
		sh.columns[i].Parquet = c.Spelled()
	}
	sh.file = decided
	return nil
}

// as takes the types that the month's first chunk has decided.
func (s *shape) as(columns []Column) error {
	s.columns = columns
	for i, c := range columns {
		if c.Parquet == "" {
			continue
		}
		decided, err := parquet.ParseType(c.Parquet)
		if err != nil {
			return fmt.Errorf("chunk 0, column %q: %w", c.Name, err)
		}
		decided.Name = c.Name
		s.file[i] = decided
	}
	return nil
}

// demanded is the type in the file of a column that the engine does not vouch for, where checks.types names it: else a column
// that begins with NULLs alone would be text. Of dates, times and booleans SQLite has texts and integers, so that naming
// them says nothing about the cells.
func demanded(c source.Column, check string) parquet.Type {
	if c.Type == source.Unknown || c.Type == source.Decimal && c.Precision == 0 {
		switch check {
		case "integer":
			return parquet.Int64
		case "real":
			return parquet.Double
		case "text":
			return parquet.String
		case "decimal":
			if c.Type == source.Decimal {
				return parquet.String
			}
		}
	}
	return parquet.Undecided
}
