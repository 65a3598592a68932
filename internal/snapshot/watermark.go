package snapshot

import (
	"context"
	"errors"
	"io"
	"time"

	"almanac/internal/failure"
	"almanac/internal/source"
)

// ReadWatermark reads watermarks by their definitions' queries: one row of one column, an instant as a timestamp or as
// text of RFC 3339. NULL, as of a source that has no row yet, is the zero time: nothing is complete.
func ReadWatermark(sources Sources) Watermark {
	return func(ctx context.Context, v Version, w Workspace) (at time.Time, err error) {
		view, err := sources.View(ctx, v.Source, w.ID)
		if err != nil {
			return at, err
		}
		defer view.Close()
		r := Run{Period: Period{Series: Series{Workspace: w.ID, Type: v.Type}}}
		all := params(r, v.Definition, v.Watermark)
		delete(all, "period_start") // a watermark is about the source, not about a month
		delete(all, "period_end")
		rows, err := view.Open(ctx, source.Query{SQL: bare(v.Watermark), Params: all, Limits: source.Limits{Rows: 2, Timeout: v.Limits.Timeout.Std()}})
		if err != nil {
			return at, err
		}
		defer rows.Close()
		if n := len(rows.Columns()); n != 1 {
			return at, failure.New(failure.DefinitionInvalid, "the watermark query has %d columns; want one", n)
		}
		row, err := rows.Next(ctx)
		if errors.Is(err, io.EOF) {
			return at, failure.New(failure.DefinitionInvalid, "the watermark query returned no row; want one")
		}
		if err != nil {
			return at, err
		}
		if at, err = watermark(&row[0]); err != nil {
			return at, err
		}
		switch _, err := rows.Next(ctx); {
		case err == nil:
			return time.Time{}, failure.New(failure.DefinitionInvalid, "the watermark query returned more than one row; want one")
		case !errors.Is(err, io.EOF):
			return time.Time{}, err
		}
		return at, nil
	}
}

func watermark(v *source.Value) (time.Time, error) {
	switch v.Kind {
	case source.KindNull:
		return time.Time{}, nil
	case source.KindTimestamp:
		return v.Time.UTC(), nil
	case source.KindText:
		if at, err := time.Parse(time.RFC3339, string(v.Text)); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, failure.New(failure.DefinitionInvalid, "the watermark is %s; want an instant such as 2013-05-01T04:00:00Z", cellText(v))
}
