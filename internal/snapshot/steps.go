package snapshot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"almanac/internal/failure"
	"almanac/internal/source"
)

// Steps are the steps of an attempt job (lifecycles D, "The attempt job"). Each is given ids alone and reads the rest; each
// may be repeated, killed at any moment, or come late: what it writes is conditional on its job, so that a frozen earlier
// job changes nothing, and one that finds the run settled or another job's does nothing and says done.
//
// The errors that a step returns are Passing, Refused and Disturbed, bare.
type Steps struct {
	Ledger   StepLedger
	Sources  Sources
	Objects  Objects
	Dispatch Dispatch // asked once a slot is free; the tick is the backstop
	Clocks   Clocks
	Timing   Timing
	Token    func() string // a token of an object's name: at least 64 random bits, small letters and digits
	Product  string        // version of the product, for manifests
	Log      *slog.Logger
	Count    Counter
}

// Run runs the step that an input names: what the function of the steps does.
func (s *Steps) Run(ctx context.Context, in StepInput) (Result, error) {
	switch in.Step {
	case StepStart:
		return s.Start(ctx, in.Job, in.Execution)
	case StepGenerate:
		return s.Generate(ctx, in.Job)
	case StepValidate:
		return s.Validate(ctx, in.Job)
	case StepPublish:
		return s.Publish(ctx, in.Job)
	case StepSettle:
		return s.Settle(ctx, in.Job, in.Error)
	}
	return Result{}, Refused{failure.New(failure.MessageInvalid, "step is %q; want start, generate, validate, publish or settle", failure.Cut(in.Step, 60))}
}

// Result is what a step tells the workflow. Done false: call the same step again.
type Result struct {
	Done   bool  `json:"done"`
	State  State `json:"state,omitempty"`  // of the run, for people who read the execution's history
	Chunks int   `json:"chunks,omitempty"` // committed so far
}

// work is one call of a step.
type work struct {
	*Steps
	log   *slog.Logger
	run   Run
	def   Version
	view  source.View
	apart bool // the view is a source.Apart
	read  bool // this call has committed the last chunk, read from view
}

// do runs one step on a job's run. Whatever was found stale on the way ends it without effect.
func (s *Steps) do(ctx context.Context, name string, j Job, step func(*work, context.Context) (bool, error)) (Result, error) {
	w := &work{Steps: s, log: s.Log.With("run", j.Run, "job", j.Job, "step", name)}
	done, err := w.begin(ctx, j, step)
	if w.view != nil {
		if closed := w.view.Close(); closed != nil {
			w.log.Warn("the source was not let go of", "error", closed.Error())
		}
	}
	result := Result{Done: done, State: w.run.State, Chunks: w.run.Cursor.Chunk}
	switch {
	case errors.Is(err, errStale):
		w.log.Info("nothing to do", "state", w.run.State, "held by job", w.run.Job)
		result.Done = true
		return result, nil
	case err != nil:
		f := failure.From(err)
		w.log.Warn("the step failed", "code", f.Code, "error", err.Error())
		return Result{}, typed(err)
	}
	w.log.Info("the step is over", "done", done, "state", w.run.State, "chunks", w.run.Cursor.Chunk)
	return result, nil
}

func (w *work) begin(ctx context.Context, j Job, step func(*work, context.Context) (bool, error)) (bool, error) {
	if j.Job < 1 {
		return false, failure.New(failure.MessageInvalid, "job is %d; want the number of an attempt job, from 1 on", j.Job)
	}
	if err := w.load(ctx, j); err != nil {
		return false, err
	}
	return step(w, ctx)
}

// load reads the run and refuses one that is not this job's any more.
func (w *work) load(ctx context.Context, j Job) error {
	r, err := w.Ledger.Run(ctx, j.Run)
	if errors.Is(err, ErrNotFound) {
		return failure.New(failure.MessageInvalid, "there is no run %q", failure.Cut(j.Run, 120))
	}
	if err != nil {
		return err
	}
	w.run = r
	if r.Job != j.Job || !r.Admitted() {
		return errStale
	}
	return nil
}

// changed is what a refused write means: read again, and either the run is stale or the caller may go on from where it
// stands now.
func (w *work) changed(ctx context.Context, err error) error {
	if !IsConflict(err) {
		return err
	}
	return w.load(ctx, Job{Run: w.run.ID(), Job: w.run.Job})
}

// define reads the definition's version that the run was planned under.
func (w *work) define(ctx context.Context) error {
	if w.def.Number > 0 {
		return nil
	}
	v, err := w.Ledger.Definition(ctx, w.run.Scope, w.run.Type, w.run.Definition)
	if errors.Is(err, ErrNotFound) {
		return failure.New(failure.DefinitionInvalid, "version %d of the definition is not there", w.run.Definition)
	}
	if err != nil {
		return err
	}
	w.def = v
	return nil
}

// hold holds the source at its present version, until the step is over.
func (w *work) hold(ctx context.Context) error {
	if w.view != nil {
		return nil
	}
	if err := w.define(ctx); err != nil {
		return err
	}
	v, err := w.Sources.View(ctx, w.def.Source, w.run.Workspace)
	if err != nil {
		return w.timely(ctx, err)
	}
	w.view = v
	if _, w.apart = v.(source.Apart); w.apart && (w.run.Mode == Single || w.run.Mode == "" && w.def.Mode == Single) {
		return failure.New(failure.DefinitionInvalid, `mode: single; want auto or chunked: source %q cannot be held at one version`, w.def.Source)
	}
	return nil
}

// left is how much of the invocation's time is left; without a deadline, a day.
func (w *work) left(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return 24 * time.Hour
	}
	return end.Sub(w.Clocks.Wall())
}

func (w *work) timeLeft(ctx context.Context) bool { return w.Timing.timeLeft(ctx, w.Clocks.Wall()) }

// timely tells an error of the work from the end of the invocation's time.
func (w *work) timely(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return failure.Wrap(failure.OutOfTime, err, "the invocation's time was up before the step came any further: make the query cheaper, take smaller chunks, or raise the function's time")
	}
	return err
}

func outOfTime(format string, args ...any) error {
	return failure.New(failure.OutOfTime, "%s", fmt.Sprintf(format, args...))
}

// free asks for a dispatch, because a slot has become free.
func (w *work) free(ctx context.Context) {
	if w.Dispatch == nil {
		return
	}
	if err := w.Dispatch.Ask(ctx); err != nil {
		w.log.Warn("no dispatch could be asked for; the tick comes", "error", err.Error())
	}
}
