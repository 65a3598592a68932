package schedule

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"almanac/internal/artifact"
	"almanac/internal/calendar"
	"almanac/internal/failure"
	"almanac/internal/source"
)

// produce makes the run's file and records it. The object's key holds the run and this attempt's lease token, so that
// no other worker writes to it; the conditional record picks the winner.
func (w *work) produce(ctx context.Context) error {
	params, err := w.parameters(ctx)
	if err != nil {
		return err
	}
	limits, err := w.def.Limits.source()
	if err != nil {
		return err
	}
	asOf, err := w.Clocks.Business(ctx)
	if err != nil {
		return err
	}
	ticket := w.ticket()
	rows, err := w.Sources.Open(ctx, w.def.Source, w.def.Workspace, source.Query{SQL: w.def.Query, Params: params, Limits: limits, Ticket: ticket})
	w.learn(ticket)
	if errors.Is(err, source.ErrRunning) {
		// Its engine is what makes progress: the wait for it costs no attempt.
		return yielded{"the query is still running"}
	}
	if err != nil {
		return w.timely(ctx, err)
	}
	defer rows.Close()
	first := &peeked{Rows: rows}
	if err := first.peek(ctx); err != nil {
		return w.timely(ctx, err)
	}
	if first.empty() && w.def.Empty == SuppressEmpty {
		return errEmpty
	}
	zone, err := calendar.LoadZone(w.def.Recurrence.Zone)
	if err != nil {
		return failure.Wrap(failure.DefinitionInvalid, err, "version %d: %v", w.def.Number, err)
	}
	format := w.def.File.Format
	format.Origin = artifact.Origin{Zone: zone, Name: w.def.Name, Schedule: w.run.Schedule, Workspace: w.def.Workspace, Source: w.def.Source,
		Run: w.id, Nominal: w.run.Nominal, DataAsOf: asOf}
	file := RecordedFile{
		Key:      FileKey(w.run, w.def.File.RetentionDays, w.lease.Token, artifact.Extension(format)),
		Name:     artifact.FileName(w.def.Name, w.run.Nominal, zone, format),
		DataAsOf: asOf,
	}
	began := w.Clocks.Wall()
	err = w.Files.Write(ctx, file.Key, artifact.MediaType(format), artifact.ContentDisposition(file.Name), func(to io.Writer) error {
		result, err := artifact.Write(ctx, first, format, to, limits.Or(source.Defaults).Bytes)
		file.Rows, file.Bytes, file.SHA256 = result.Rows, result.Bytes, result.SHA256
		return err
	})
	if err != nil {
		return w.timely(ctx, err)
	}
	file.Expires, file.LinksEnd = expiry(w.def, w.Clocks.Wall())
	if err := w.Ledger.RecordFile(ctx, w.run, w.now(), file); err != nil {
		w.unsure = !IsConflict(err)
		return err
	}
	w.run.File, w.fresh = &file, true
	w.charged()
	w.log.Info("file recorded", "rows", file.Rows, "bytes", file.Bytes, "sha256", file.SHA256, "ms", w.Clocks.Wall().Sub(began).Milliseconds())
	w.Count("file_bytes", int(file.Bytes), "", w.def.File.Kind)
	return nil
}

// expiry is when a file that is recorded now goes, and when links to it end: counted from the file, not from the
// admission, so that no link is dead on arrival.
func expiry(v Version, recorded time.Time) (file, links time.Time) {
	file = recorded.AddDate(0, 0, v.File.RetentionDays)
	links = file
	if life := v.File.LinkLife.Std(); life > 0 && recorded.Add(life).Before(file) {
		links = recorded.Add(life)
	}
	return file, links
}

// timely tells an error of the work from the end of the invocation's time.
func (w *work) timely(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return failure.Wrap(failure.OutOfTime, err, "the file was not ready when the invocation's time was nearly up: make the query cheaper, or raise the function's time")
	}
	return err
}

// FileKey is where a run's file lies: below the prefix of its retention, so that a lifecycle rule removes all files of
// a run together.
func FileKey(r Run, retentionDays int, token, extension string) string {
	return path.Join("files", fmt.Sprintf("%dd", retentionDays), r.Schedule, strings.ReplaceAll(r.Occurrence, ":", ""), token+extension)
}

// parameters are the schedule's own and the ones that the product gives (design.md §4).
func (w *work) parameters(ctx context.Context) (map[string]any, error) {
	params := map[string]any{}
	for name, v := range w.def.Parameters {
		params[name] = v
	}
	params["workspace"] = w.def.Workspace
	params["scheduled_time"] = w.run.Nominal.UTC()
	params["last_success_time"] = nil
	s, err := w.Ledger.Schedule(ctx, w.run.Schedule)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	if !s.LastSuccess.IsZero() {
		params["last_success_time"] = s.LastSuccess.UTC()
	}
	return params, nil
}

func (l DefinitionLimit) source() (source.Limits, error) {
	out := source.Limits{Rows: l.Rows, Bytes: l.Bytes}
	if l.Timeout != "" {
		d, err := time.ParseDuration(l.Timeout)
		if err != nil {
			return out, failure.Wrap(failure.DefinitionInvalid, err, "limits.timeout is %q; want a duration such as \"90s\"", l.Timeout)
		}
		out.Timeout = d
	}
	return out, nil
}

// peeked is a result whose first row was looked at before anything is written.
type peeked struct {
	source.Rows
	row    []source.Value
	err    error
	looked bool
}

func (p *peeked) peek(ctx context.Context) error {
	p.row, p.err = p.Rows.Next(ctx)
	p.looked = true
	if p.err != nil && !errors.Is(p.err, io.EOF) {
		return p.err
	}
	return nil
}

func (p *peeked) empty() bool { return errors.Is(p.err, io.EOF) }

func (p *peeked) Next(ctx context.Context) ([]source.Value, error) {
	if p.looked {
		p.looked = false
		return p.row, p.err
	}
	return p.Rows.Next(ctx)
}
