package artifact_test

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"time"
	"unsafe"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"almanac/internal/source"
)

// view is a text without a copy, so that the comparison does not pay for one.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// viaEncodingCSV writes the same rows with the standard library, without hash and without neutralising.
func viaEncodingCSV(rows source.Rows, w io.Writer) error {
	out := csv.NewWriter(w)
	record := make([]string, len(rows.Columns()))
	for i, c := range rows.Columns() {
		record[i] = c.Name
	}
	for {
		if err := out.Write(record); err != nil {
			return err
		}
		row, err := rows.Next(context.Background())
		if errors.Is(err, io.EOF) {
			out.Flush()
			return out.Error()
		}
		if err != nil {
			return err
		}
		for i, v := range row {
			switch v.Kind {
			case source.KindNull:
				record[i] = ""
			case source.KindInt:
				record[i] = strconv.FormatInt(v.Int, 10)
			case source.KindFloat:
				record[i] = strconv.FormatFloat(v.Float, 'f', -1, 64)
			case source.KindTimestamp:
				record[i] = v.Time.UTC().Format("2006-01-02T15:04:05.000Z07:00")
			default:
				record[i] = view(v.Text)
			}
		}
	}
}

// raw moves as many bytes in blocks, formatting nothing: the bound of any writer.
func raw(rows source.Rows, w io.Writer, bytes int64) error {
	if err := drain(rows); err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	for ; bytes > 0; bytes -= int64(len(block)) {
		if _, err := w.Write(block[:min(bytes, int64(len(block)))]); err != nil {
			return err
		}
	}
	return nil
}

// packAlone packs bytes that are ready, with the settings of the product's packers and without a hash.
func packAlone(packing string, ready []byte) error {
	var zip io.WriteCloser
	var err error
	if packing == "gzip" {
		zip, err = gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
	} else {
		zip, err = zstd.NewWriter(io.Discard, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	}
	if err != nil {
		return err
	}
	for block := range slices.Chunk(ready, 1<<20) {
		if _, err := zip.Write(block); err != nil {
			return err
		}
	}
	return zip.Close()
}

// order is a generated row as a program would give it to encoding/json; exact numbers are its Number.
type order struct {
	ID        int64       `json:"id"`
	Account   int64       `json:"account"`
	Amount    json.Number `json:"amount"`
	Price     json.Number `json:"price"`
	CreatedAt time.Time   `json:"created_at"`
	UpdatedAt time.Time   `json:"updated_at"`
	Name      string      `json:"name"`
	Status    string      `json:"status"`
	Note      *string     `json:"note"`
	Quantity  *int64      `json:"quantity"`
}

// viaEncodingJSON writes the same rows with the standard library, without a hash.
func viaEncodingJSON(rows source.Rows, w io.Writer) error {
	buffered := bufio.NewWriterSize(w, 1<<20)
	out := json.NewEncoder(buffered)
	out.SetEscapeHTML(false)
	for {
		row, err := rows.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return buffered.Flush()
		}
		if err != nil {
			return err
		}
		o := order{ID: row[0].Int, Account: row[1].Int, Amount: json.Number(view(row[2].Text)), Price: json.Number(view(row[3].Text)), CreatedAt: row[4].Time, UpdatedAt: row[5].Time, Name: view(row[6].Text), Status: view(row[7].Text)}
		if note := view(row[8].Text); row[8].Kind != source.KindNull {
			o.Note = &note
		}
		if row[9].Kind != source.KindNull {
			o.Quantity = &row[9].Int
		}
		if err := out.Encode(&o); err != nil {
			return err
		}
	}
}
