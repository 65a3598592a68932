package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"

	"almanac/internal/failure"
	"almanac/internal/source"
)

// Validate checks the whole generation against the control query and records the verdict. A verdict that failed is the
// step's failure; one that is recorded already is not found again.
func (s *Steps) Validate(ctx context.Context, j Job) (Result, error) {
	return s.do(ctx, "validate", j, func(w *work, ctx context.Context) (bool, error) {
		return w.validate(ctx)
	})
}

func (w *work) validate(ctx context.Context) (done bool, err error) {
	switch {
	case w.run.State == Running && !w.run.Cursor.Done:
		return false, failure.New(failure.InternalError, "validation was asked for before the month was read to its end")
	case w.run.State == Running:
		r, err := w.Ledger.BeginValidation(ctx, w.run, w.Clocks.Wall())
		if err != nil {
			if err := w.changed(ctx, err); err != nil {
				return false, err
			}
		} else {
			w.run = r
		}
	case w.run.State == Validating:
		r, err := w.Ledger.Resume(ctx, w.run)
		if err != nil {
			return false, w.changed(ctx, err)
		}
		w.run = r
	}
	if w.run.State != Validating {
		return true, errStale
	}
	if v := w.run.Verdict; v != nil {
		return true, verdictFailure(v)
	}
	err = w.judge(ctx)
	if errors.Is(err, source.ErrRunning) {
		return false, nil // the next call waits for the same query
	}
	return true, err
}

// verdictFailure is the failure of a recorded verdict, nil if it passed.
func verdictFailure(v *Verdict) error {
	if v.Passed {
		return nil
	}
	if f := refusal(v.Checks); f != nil {
		return f
	}
	return failure.New(failure.InternalError, "a failed verdict without a failed check")
}

// judge makes the checks, writes the manifest of a month that passes, and records the verdict.
func (w *work) judge(ctx context.Context) error {
	if err := w.hold(ctx); err != nil {
		return err
	}
	c, err := w.control(ctx)
	if err != nil {
		return err
	}
	f, err := w.fold(ctx)
	if err != nil {
		return w.timely(ctx, err)
	}
	if err := w.oneView(f); err != nil {
		return err
	}
	if err := w.summed(f, c); err != nil {
		return err
	}
	if cur := w.run.Cursor; f.numbers == "" && (f.totals.Chunks != cur.Chunk || f.totals.Rows != cur.Rows) {
		f.numbers = fmt.Sprintf("%d chunks with %d rows are recorded, %d chunks with %d rows were committed", f.totals.Chunks, f.totals.Rows, cur.Chunk, cur.Rows)
	}
	missing, err := w.objects(ctx, f)
	if err != nil {
		return w.timely(ctx, err)
	}
	current, err := w.current(ctx)
	if err != nil {
		return err
	}
	version, month, err := w.previous(ctx, current)
	if err != nil {
		return w.timely(ctx, err)
	}
	d := w.def.Definition
	checks := judge(d, f, c, missing)
	checks = append(checks, drift(d, f, "previous_version", version, func(d Drift) *float64 { return d.ByVersion })...)
	checks = append(checks, drift(d, f, "previous_month", month, func(d Drift) *float64 { return d.ByMonth })...)
	v := Verdict{Current: current.Version, Checks: checks}
	used := accept(checks, w.run.Accepted)
	if v.Passed = refusal(checks) == nil; v.Passed {
		if v.Manifest, err = w.writeManifest(ctx, f, checks, used, current, month); err != nil {
			return w.timely(ctx, err)
		}
	}
	if err := w.Ledger.RecordVerdict(ctx, w.run, v, w.Clocks.Wall()); err != nil {
		if !IsConflict(err) {
			return err
		}
		if err := w.changed(ctx, err); err != nil {
			return err
		}
		return failure.Wrap(failure.StoreUnavailable, err, "the verdict could not be recorded: the run has changed")
	}
	w.run.Verdict = &v
	return verdictFailure(&v)
}

// oneView refuses to judge the rows of a single pass by another version of the source than they were read from. Where
// another call read them, only equal versions are the same view.
func (w *work) oneView(f *fold) error {
	now := w.view.Version()
	if w.run.Mode != Single || w.read || now != "" && now == f.source {
		return nil
	}
	return failure.New(failure.SourceChanged, "the rows of the single pass were read from version %q of the source, which is at version %q now: the next attempt reads it again", f.source, now)
}

// current reads the period's pointer; a period without one has version 0.
func (w *work) current(ctx context.Context) (Pointer, error) {
	p, err := w.Ledger.Pointer(ctx, w.run.Period)
	if errors.Is(err, ErrNotFound) {
		return Pointer{Period: w.run.Period}, nil
	}
	return p, err
}

// writeManifest writes the manifest under its own hash; one with the same bytes may be there from an earlier try.
func (w *work) writeManifest(ctx context.Context, f *fold, checks []Check, used []Acceptance, current Pointer, month *Manifest) (hash string, err error) {
	r := w.run
	m := Manifest{
		Format: ManifestFormat, Run: r.ID(), Workspace: r.Workspace, Type: r.Type, Month: r.Month, Version: r.Version,
		Period:     Bounds{Start: r.Start.UTC(), End: r.End.UTC(), Zone: r.Zone},
		Definition: DefinitionRef{Scope: r.Scope, Version: r.Definition, Hash: w.def.Hash},
		Source:     SourceRef{Name: w.def.Source, Version: f.source, Validated: w.validated()}, Generation: r.Generation,
		Key: ManifestKeyColumn{Column: w.def.Key, Type: keyTypeName(f.last.Kind)}, Columns: f.columns,
		Files:  w.def.Format.form().files,
		Totals: f.totals, ComparedTo: Compared{Current: current.Version}, Checks: checks, Acceptances: used, Chunks: f.chunks, Product: w.Product,
	}
	if month != nil {
		m.ComparedTo.PreviousMonth = month.Run
	}
	body, hash, err := m.Encode()
	if err != nil {
		return "", err
	}
	if len(body) > MaxManifest {
		return "", failure.New(failure.DefinitionInvalid, "the month has %d chunks, too many for a manifest of %d bytes: raise chunk_rows", f.totals.Chunks, MaxManifest)
	}
	err = w.Objects.Write(ctx, ManifestKey(r.Period, r.Version, hash), manifestType, "", func(to io.Writer) error {
		_, err := to.Write(body)
		return err
	})
	return hash, err
}

func keyTypeName(k KeyKind) string {
	switch k {
	case IntegerKey:
		return "integer"
	case DecimalKey:
		return "decimal"
	case TextKey:
		return "text"
	}
	return ""
}
