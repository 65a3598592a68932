package snapshot

import (
	"context"
	"fmt"
	"slices"

	"almanac/internal/input"
)

// Request asks for a new version of a period: a rerun where one is published, otherwise a first try or another one. It is
// refused with a Conflict that names the active version, or why the month cannot be generated.
func (e *Editor) Request(ctx context.Context, p Period, why, by string) (Run, error) {
	return e.request(ctx, p, why, by, nil)
}

// Accept asks for a new version of the period of a run that failed for good, which passes the named checks where it finds
// the same values again (lifecycles D, "Validation"). Every check must be one that the run failed; what earlier acts
// accepted for it stays accepted.
func (e *Editor) Accept(ctx context.Context, id string, checks []string, why, by string) (Run, error) {
	r, err := e.Ledger.Run(ctx, id)
	if err != nil {
		return r, err
	}
	if r.State != Failed || !r.Final() {
		return r, &Conflict{Event: "accept", Why: "the run is " + describe(r) + "; only of a run that failed for good can a check be accepted", Run: &r}
	}
	head, err := e.Ledger.Head(ctx, r.Period)
	if err != nil {
		return r, err
	}
	if head.Active == 0 && head.Latest != r.Version {
		return r, &Conflict{Event: "accept", Why: fmt.Sprintf("version %d has followed; accept what that found", head.Latest), Run: &r, Head: &head}
	}
	accepted, err := acceptances(r, checks, why, by)
	if err != nil {
		return r, err
	}
	return e.request(ctx, r.Period, why, by, accepted)
}

// acceptances are a person's acceptances of failed checks, with the values that the run found.
func acceptances(r Run, checks []string, why, by string) ([]Acceptance, error) {
	var failed []string
	found := map[string]string{}
	if r.Verdict != nil {
		for _, c := range r.Verdict.Checks {
			if !c.Passed {
				failed, found[c.Name] = append(failed, c.Name), c.Found
			}
		}
	}
	if len(checks) == 0 {
		return nil, input.Problems{input.Wrong("checks", "", fmt.Sprintf("the names of failed checks, of %q", failed))}
	}
	accepted := slices.Clone(r.Accepted)
	for i, name := range checks {
		value, ok := found[name]
		if !ok {
			return nil, input.Problems{input.Wrong(fmt.Sprintf("checks[%d]", i), input.Quote(name), fmt.Sprintf("a check that %s failed, of %q", r.ID(), failed))}
		}
		accepted = slices.DeleteFunc(accepted, func(a Acceptance) bool { return a.Check == name })
		accepted = append(accepted, Acceptance{Check: name, Found: value, By: by, Why: why})
	}
	return accepted, nil
}

func (e *Editor) request(ctx context.Context, p Period, why, by string, accepted []Acceptance) (Run, error) {
	if err := needReason(why); err != nil {
		return Run{}, err
	}
	w, err := e.weigher(ctx)
	if err != nil {
		return Run{}, err
	}
	return e.planOne(ctx, w, p, true, why, by, accepted)
}

// planOne weighs a period and plans its next version, again where its head changed meanwhile.
func (e *Editor) planOne(ctx context.Context, w *weigher, p Period, rerun bool, why, by string, accepted []Acceptance) (Run, error) {
	for try := 0; ; try++ {
		planning, err := w.weigh(ctx, p, rerun)
		if err != nil {
			return Run{}, err
		}
		r := &planning.Run
		planning.Event, planning.Token = Request, e.Token()
		r.RequestedBy, r.RequestWhy, r.Accepted = by, why, accepted
		what := "request"
		if len(accepted) > 0 {
			what = "accept checks"
		}
		a := e.audit(r.ID(), by, what, why, before(planning.Head), describeRequest(*r))
		planning.Audit = &a
		err = e.Ledger.Plan(ctx, planning)
		if IsConflict(err) && ctx.Err() == nil && try < rereads {
			continue
		}
		if err == nil {
			ask(ctx, e.Dispatch, e.Log)
			e.Log.Info("requested", "run", r.ID(), "backfill", r.Backfill, "by", by)
		}
		return *r, err
	}
}

func before(h Head) string {
	if h.Latest == 0 {
		return ""
	}
	return fmt.Sprintf("version %d, %s", h.Latest, h.LatestState)
}

func describeRequest(r Run) string {
	text := fmt.Sprintf("version %d, %s", r.Version, Planned)
	for _, a := range r.Accepted {
		text += fmt.Sprintf("; check %s accepted as %s", a.Check, a.Found)
	}
	return text
}

// describe says how a run stands, for people.
func describe(r Run) string {
	if r.State == Failed && !r.Final() {
		return "failed and will be tried again at " + instant(r.NextAt)
	}
	return settledAs(r)
}
