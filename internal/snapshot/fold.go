package snapshot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
)

// chunkPage is how many chunk records are read at once.
const chunkPage = 500

// fold is what the records of a generation's chunks come to.
type fold struct {
	totals  Totals
	sums    map[string]Sum
	nulls   map[string]int64
	wrong   map[string]int64
	columns []Column
	source  string // the version that the first chunk was read from
	chunks  []ManifestChunk
	last    Key
	keys    string // what is wrong with the keys; empty: nothing
	numbers string // what is wrong with the chunks' numbers
}

// fold reads the records of a run's generation page by page. What stays in memory of each is its line of the manifest.
func (w *work) fold(ctx context.Context) (*fold, error) {
	f := &fold{sums: map[string]Sum{}, nulls: map[string]int64{}, wrong: map[string]int64{}}
	for from := 0; ; {
		page, err := w.Ledger.Chunks(ctx, w.run.ID(), w.run.Generation, from, chunkPage)
		if err != nil {
			return nil, err
		}
		for _, c := range page {
			if err := f.add(c); err != nil {
				return nil, err
			}
			from = c.Number + 1
		}
		if len(page) < chunkPage {
			break
		}
		if !w.timeLeft(ctx) {
			return nil, outOfTime("the records of %d chunks were not read when the invocation's time was nearly up", f.totals.Chunks)
		}
	}
	f.totals.Sums = map[string]string{}
	for name, s := range f.sums {
		f.totals.Sums[name] = s.String()
	}
	return f, nil
}

// add takes the next record.
func (f *fold) add(c Chunk) error {
	if c.Number != f.totals.Chunks && f.numbers == "" {
		f.numbers = fmt.Sprintf("chunk %d where chunk %d should be", c.Number, f.totals.Chunks)
	}
	if err := f.follow(c); err != nil {
		return err
	}
	if len(c.Columns) > 0 {
		f.columns, f.source = c.Columns, c.Source
	}
	f.totals.Chunks++
	f.totals.Rows += c.Rows
	f.totals.Bytes += c.Bytes
	for name, text := range c.Sums {
		s, err := DecodeSum(text)
		if err != nil {
			return fmt.Errorf("chunk %d, column %q: %w", c.Number, name, err)
		}
		total := f.sums[name]
		total.Merge(s)
		f.sums[name] = total
	}
	addCounts(f.nulls, c.Nulls)
	addCounts(f.wrong, c.Wrong)
	f.chunks = append(f.chunks, ManifestChunk{Object: c.Object, SHA256: c.SHA256, Bytes: c.Bytes, Rows: c.Rows, First: c.First, Last: c.Last})
	return nil
}

// follow checks that the chunk's keys follow those of the chunk before.
func (f *fold) follow(c Chunk) error {
	first, err := DecodeKey(c.First)
	if err != nil {
		return fmt.Errorf("chunk %d: %w", c.Number, err)
	}
	last, err := DecodeKey(c.Last)
	if err != nil {
		return fmt.Errorf("chunk %d: %w", c.Number, err)
	}
	if c.Rows == 0 {
		return nil
	}
	wrong := !c.Increasing || first.Kind != last.Kind || first.Compare(last) > 0 ||
		f.last.Kind != NoKey && (f.last.Kind != first.Kind || f.last.Compare(first) >= 0)
	if wrong && f.keys == "" {
		f.keys = fmt.Sprintf("chunk %d holds %s to %s after %s", c.Number, first, last, f.last)
	}
	f.last = last
	return nil
}

func addCounts(to, from map[string]int64) {
	for name := range maps.Keys(from) {
		to[name] += from[name]
	}
}

// objects compares the list of stored objects with the records: each chunk's object must be there with its size. Both are
// in the order of the chunks' numbers, so that one pass does. Objects that no record names are left by killed
// invocations and do not matter. It returns the first difference.
func (w *work) objects(ctx context.Context, f *fold) (wrong string, err error) {
	i := 0
	err = w.Objects.List(ctx, GenerationPrefix(w.run.Period, w.run.Version, w.run.Generation), func(key string, size int64) error {
		for i < len(f.chunks) && f.chunks[i].Object < key {
			return errStop // the object of chunk i would have come by now
		}
		if i == len(f.chunks) {
			return errStop
		}
		if c := f.chunks[i]; c.Object == key {
			if c.Bytes != size {
				wrong = fmt.Sprintf("%s has %d bytes, recorded are %d", short(key), size, c.Bytes)
				return errStop
			}
			i++
		}
		return nil
	})
	if err != nil && !errors.Is(err, errStop) {
		return "", err
	}
	if wrong == "" && i < len(f.chunks) {
		wrong = short(f.chunks[i].Object) + " is not there"
	}
	return wrong, nil
}

var errStop = errors.New("enough")

func short(key string) string { return key[strings.LastIndex(key, "/")+1:] }
