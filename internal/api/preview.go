package api

import (
	"context"
	"fmt"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/schedule"
)

// previewed is how many due times are shown.
const previewed = 5

// preview lists the next due times of an active schedule. It begins at the last one, so that a gap before the next is
// explained, unless an edit or a resume has moved the next one further on.
func (s *server) preview(ctx context.Context, row schedule.Schedule, def schedule.Definition) ([]Due, error) {
	if row.NextDue.IsZero() {
		return []Due{}, nil
	}
	spec := def.Recurrence
	if spec.Zone == "" {
		w, err := s.Reader.Workspace(ctx, row.Workspace)
		if err != nil {
			return nil, fmt.Errorf("zone of workspace %s: %w", row.Workspace, err)
		}
		spec.Zone = w.Zone
	}
	rule, err := calendar.Parse(spec)
	if err != nil {
		return nil, fmt.Errorf("recurrence of schedule %s, version %d: %w", row.ID, row.Version, err)
	}
	if !row.LastNominal.IsZero() {
		list := rule.Preview(row.LastNominal, previewed)
		for _, e := range list {
			if e.Skipped {
				continue
			}
			if e.At.Equal(row.NextDue) {
				return dues(list), nil
			}
			break
		}
	}
	return dues(rule.Preview(row.NextDue.Add(-time.Nanosecond), previewed)), nil
}
