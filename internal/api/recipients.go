package api

import (
	"context"
	"slices"
	"strings"

	"almanac/internal/api/routes"
	"almanac/internal/channel"
	"almanac/internal/schedule"
)

// shownRecipients is how many recipients of a run are shown beside it; its list has all of them, in pages.
const shownRecipients = 100

// recipientStates are what the list of a run's recipients can be narrowed to.
var recipientStates = []string{string(schedule.Pending), string(schedule.Submitted), string(schedule.NotDelivered), string(schedule.Unknown), string(schedule.NotSent)}

type recipientsOf struct {
	RunID
	Listing
	State string `query:"state" doc:"only recipients of this outcome: pending, submitted, skipped, unknown or not_sent"`
}

func (s *server) listRecipients(ctx context.Context, in *recipientsOf) (*list[RecipientView], error) {
	row, err := s.visibleRun(ctx, in.Run, routes.Viewer)
	if err != nil {
		return nil, err
	}
	if in.State != "" && !slices.Contains(recipientStates, in.State) {
		return nil, wrong("state", in.State, "one of "+strings.Join(recipientStates, ", ")+", or nothing for all")
	}
	right := caller(ctx).In(row.Workspace)
	read := func(ctx context.Context, _, from string, limit int) ([]schedule.Submission, string, error) {
		return s.Reader.SubmissionPage(ctx, in.Run, schedule.SubmissionState(in.State), from, limit)
	}
	// A cursor belongs to the list of one state: the next page of another would leave out what lies before it.
	return pageOf(ctx, in.Listing, "recipients", in.Run+" "+in.State, read, func(sub schedule.Submission) RecipientView {
		return recipientView(sub, row, right)
	})
}

// summary counts a run's recipients by outcome and keeps those that are shown beside it: who needs help first, where they
// are too many. It never holds more than a few times of what is shown.
type summary struct {
	counts map[string]int
	first  []schedule.Submission    // the first of all, in the list's order
	urgent [3][]schedule.Submission // the first of each kind of help
	total  int
}

// urgency orders who needs a person: nobody knows, was not asked, refused.
func urgency(sub schedule.Submission) (kind int, ok bool) {
	switch {
	case sub.State == schedule.Unknown:
		return 0, true
	case sub.State == schedule.NotSent:
		return 1, true
	case sub.State == schedule.NotDelivered && sub.Reason == channel.ReasonRefused:
		return 2, true
	}
	return 0, false
}

func (m *summary) add(sub schedule.Submission) {
	m.total++
	m.counts[string(sub.State)]++
	if len(m.first) < shownRecipients {
		m.first = append(m.first, sub)
	}
	if kind, ok := urgency(sub); ok && len(m.urgent[kind]) < shownRecipients {
		m.urgent[kind] = append(m.urgent[kind], sub)
	}
}

// shown are all, in the list's order, or who needs help first and then the first of the others.
func (m *summary) shown() []schedule.Submission {
	if m.total <= shownRecipients {
		return m.first
	}
	out := slices.Concat(m.urgent[:]...)
	for _, sub := range m.first {
		if _, ok := urgency(sub); !ok {
			out = append(out, sub)
		}
	}
	return out[:min(len(out), shownRecipients)]
}

// recipients reads what a run shows of its recipients.
func (s *server) recipients(ctx context.Context, row schedule.Run) (RecipientSummary, error) {
	m := summary{counts: map[string]int{}}
	if err := s.Reader.EachSubmission(ctx, row.ID(), m.add); err != nil {
		return RecipientSummary{}, err
	}
	right := caller(ctx).In(row.Workspace)
	v := RecipientSummary{Outcomes: m.counts, Recipients: []RecipientView{}}
	for _, sub := range m.shown() {
		v.Recipients = append(v.Recipients, recipientView(sub, row, right))
	}
	v.NotShown = m.total - len(v.Recipients)
	return v, nil
}

// RecipientSummary is what a run shows of its recipients.
type RecipientSummary struct {
	Outcomes   map[string]int  `json:"outcomes" doc:"how many recipients came to each outcome; those that were not asked yet are in none"`
	Recipients []RecipientView `json:"recipients" doc:"up to 100; where there are more, those that need a person come first: unknown, not_sent, refused"`
	NotShown   int             `json:"recipients_not_shown,omitempty" doc:"how many more GET /runs/{run}/recipients lists"`
}
