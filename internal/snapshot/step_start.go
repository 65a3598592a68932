package snapshot

import "context"

// Start begins a queued run's attempt: the mode is chosen once and kept; generation and cursor are kept, or a new
// generation begins at chunk 0 after a failure in validating, or where definition, bounds or source are others than those
// the generation was begun from. A run that is running or validating under this job already goes on as it stands.
func (s *Steps) Start(ctx context.Context, j Job, execution string) (Result, error) {
	return s.do(ctx, "start", j, func(w *work, ctx context.Context) (bool, error) {
		if w.run.State == Queued {
			return true, w.start(ctx, execution)
		}
		r, err := w.Ledger.Resume(ctx, w.run)
		if err != nil {
			return true, w.changed(ctx, err)
		}
		w.run = r
		return true, nil
	})
}

func (w *work) start(ctx context.Context, execution string) error {
	b, err := w.beginning(ctx)
	if err != nil {
		return err
	}
	b.Execution, b.Now = execution, w.Clocks.Wall()
	r, err := w.Ledger.Begin(ctx, w.run, b)
	if err != nil {
		return w.changed(ctx, err)
	}
	w.run = r
	w.log.Info("the attempt begins", "attempt", r.Attempts, "mode", r.Mode, "generation", r.Generation, "at chunk", r.Cursor.Chunk)
	return nil
}

// beginning decides how the attempt begins.
func (w *work) beginning(ctx context.Context) (Beginning, error) {
	if err := w.hold(ctx); err != nil {
		return Beginning{}, err
	}
	b := Beginning{Mode: w.run.Mode, Basis: Basis{Definition: w.run.Definition, Start: w.run.Start, End: w.run.End, Source: w.view.Version()}}
	if b.Mode == "" {
		mode, err := w.chooseMode(ctx)
		if err != nil {
			return b, err
		}
		b.Mode = mode
	}
	if goesOn(w.run, b.Basis) {
		b.Generation, b.Cursor = w.run.Generation, w.run.Cursor
	} else {
		b.Generation = w.run.Generation + 1
	}
	return b, nil
}

// goesOn reports whether the generation that a run has may be continued at its cursor. A single pass is never: its rows and
// its control query are of one view of the source, which went with its attempt. Nor is one whose result is gone from which
// chunks were cut.
func goesOn(r Run, now Basis) bool {
	return r.Generation > 0 && r.Mode != Single && r.FailedIn != Validating && r.Basis.equal(now) && !r.torn()
}

func (b Basis) equal(o Basis) bool {
	return b.Definition == o.Definition && b.Start.Equal(o.Start) && b.End.Equal(o.End) && b.Source == o.Source
}

// chooseMode counts the rows where the definition leaves the mode open.
func (w *work) chooseMode(ctx context.Context) (Mode, error) {
	if w.apart {
		return Chunked, nil
	}
	if w.def.Mode != Auto && w.def.Mode != "" {
		return w.def.Mode, nil
	}
	c, err := control(ctx, w.view.Open, w.run, w.def.Definition)
	if err != nil {
		return "", w.timely(ctx, err)
	}
	most := w.def.SingleRows
	if most == 0 {
		most = DefaultSingleRows
	}
	if c.Rows <= most {
		return Single, nil
	}
	return Chunked, nil
}
