package snapshot

import (
	"context"
	"fmt"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/input"
)

// weigher decides which periods may be asked for. It holds what is configured, and reads each series' watermark once.
type weigher struct {
	ledger   PeopleLedger
	read     Watermark
	clocks   Clocks
	now      time.Time // business time
	view     view
	supplies map[Series]*supply
}

func (e *Editor) weigher(ctx context.Context) (*weigher, error) {
	w := &weigher{ledger: e.Ledger, read: e.Watermark, clocks: e.Clocks, supplies: map[Series]*supply{}}
	var err error
	if w.now, err = e.Clocks.Business(ctx); err != nil {
		return nil, err
	}
	w.view, err = viewOf(ctx, e.Ledger)
	return w, err
}

// of is a series that people may name.
func (w *weigher) of(s Series) (*supply, error) {
	if known, ok := w.supplies[s]; ok {
		return known, nil
	}
	l := w.view.line(s)
	if l.workspace.ID == "" {
		return nil, input.Problems{input.Wrong("workspace", fmt.Sprintf("%q", s.Workspace), "a workspace that exists; `almanac get workspaces` lists them")}
	}
	if l.version.Number == 0 {
		return nil, input.Problems{input.Wrong("type", fmt.Sprintf("%q", s.Type), fmt.Sprintf("a type that is defined for workspace %s; `almanac get snapshots` lists them", s.Workspace))}
	}
	l, err := l.located()
	if err != nil {
		return nil, err
	}
	w.supplies[s] = &supply{line: l, read: w.read}
	return w.supplies[s], nil
}

// weigh makes the plan of a period's next version, or refuses it: input.Problems where the month cannot be asked for, a
// *Conflict where something stands against it now. rerun permits a period that is published.
func (w *weigher) weigh(ctx context.Context, p Period, rerun bool) (Planning, error) {
	s, err := w.of(p.Series)
	if err != nil {
		return Planning{}, err
	}
	if err := w.closed(s.line, p.Month); err != nil {
		return Planning{}, err
	}
	head, err := w.ledger.Head(ctx, p)
	if err != nil {
		return Planning{}, err
	}
	refused := func(format string, args ...any) error {
		return &Conflict{Event: string(Request), Why: fmt.Sprintf(format, args...), Head: &head}
	}
	if head.Active != 0 {
		return Planning{}, active(ctx, w.ledger, Request, head)
	}
	why, err := s.ineligible(ctx, p.Month)
	if err != nil {
		return Planning{}, err
	}
	if why.Reason != "" {
		return Planning{}, refused("%s: %s", why.Reason, why.Text)
	}
	if ready := s.line.lookAt(p.Month); w.now.Before(ready) {
		return Planning{}, refused("%s: the month is complete at %s", ReasonLoading, instant(ready))
	}
	pointer, err := w.ledger.Pointer(ctx, p)
	if err != nil {
		return Planning{}, err
	}
	if pointer.Version != 0 && !rerun {
		return Planning{}, refused("version %d is published; ask for a rerun of %s to replace it", pointer.Version, p.Month)
	}
	if head.Latest >= MaxVersions {
		return Planning{}, refused("the month has %d versions, as many as it may have", head.Latest)
	}
	planning, err := s.line.planning(head, w.now, w.clocks.Wall())
	if pointer.Version != 0 {
		planning.LateAt = time.Time{} // what was published is not late again
	}
	return planning, err
}

// closed refuses a month that the line does not have, or that goes on.
func (w *weigher) closed(l line, m calendar.Month) error {
	last := calendar.MonthOf(w.now, l.zone).Add(-1)
	switch {
	case m == (calendar.Month{}):
		return input.Problems{input.Wrong("month", "", wantMonth)}
	case m.Before(l.version.Start):
		return input.Problems{input.Wrong("month", m.String(), "a month from "+l.version.Start.String()+" on, where the definition starts")}
	case last.Before(m):
		_, end := m.Bounds(l.zone)
		return input.Problems{input.Wrong("month", fmt.Sprintf("%s, which ends at %s", m, instant(end)), "a month that has closed, at the latest "+last.String())}
	}
	return nil
}
