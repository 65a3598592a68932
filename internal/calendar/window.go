package calendar

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// MaxCount is the highest count.
const MaxCount = 100_000

// countYears is how long a count may take to be used up. Beyond it lies a slip of the pen, not a plan, and the search
// for the last occurrence has to end somewhere.
const countYears = 1000

// parseWindow reads start, end and count, each for itself and against each other.
func (r *Recurrence) parseWindow(s Spec) error {
	var errs []error
	moment := func(field, text string) (t time.Time) {
		if text != "" {
			var err error
			if t, err = r.zone.parseMoment(field, text); err != nil {
				errs = append(errs, err)
			}
		}
		return t
	}
	r.start, r.end = moment("start", s.Start), moment("end", s.End)
	r.limit = r.end
	if len(errs) == 0 && !r.start.IsZero() && !r.end.IsZero() && !r.end.After(r.start) {
		errs = append(errs, &FieldError{"end", s.End, "is not after start, which is " + r.start.Format(time.RFC3339), "a later end"})
	}
	if s.Start == "" && s.Every != "" {
		errs = append(errs, &FieldError{"start", "", "is empty, but every counts from it", wantMoment})
	}
	if s.Count == nil {
		return errors.Join(errs...)
	}
	if *s.Count < 1 || *s.Count > MaxCount {
		errs = append(errs, &FieldError{"count", strconv.Itoa(*s.Count), "is out of range", fmt.Sprintf("1 to %d", MaxCount)})
	}
	if s.Start == "" && s.Every == "" {
		errs = append(errs, &FieldError{"start", "", "is empty, but count begins with it", wantMoment})
	}
	return errors.Join(errs...)
}

// applyCount turns the count into a limit, once, so that each answer needs no history.
func (r *Recurrence) applyCount() error {
	if r.spec.Count == nil {
		return nil
	}
	until := r.start.AddDate(countYears, 0, 0)
	if past := time.Date(maxYear+1, 1, 1, 0, 0, 0, 0, time.UTC); until.After(past) {
		until = past
	}
	ended := !r.limit.IsZero() && !r.limit.After(until)
	if ended {
		until = r.limit
	}
	last, _ := r.nth(*r.spec.Count, until)
	switch {
	case !last.IsZero():
		r.limit = last.Add(time.Second)
	case !ended:
		return &FieldError{"count", strconv.Itoa(*r.spec.Count),
			fmt.Sprintf("is not used up by %s", until.Format(time.DateOnly)), "a smaller count, or none"}
	}
	return nil
}

// dueWithin refuses a window that leaves nothing due. Without a start there is always something before an end.
func (r *Recurrence) dueWithin() error {
	if r.start.IsZero() || !r.Next(r.start.Add(-1)).At.IsZero() {
		return nil
	}
	first, _ := r.unbounded(r.start.Add(-1))
	if first.IsZero() {
		return &FieldError{"start", r.spec.Start, "leaves nothing due: nothing is from it on, up to the year 9999", "an earlier start"}
	}
	return &FieldError{"end", r.spec.End, "leaves nothing due: the first time from start on is " + r.text(first), "an end after that"}
}

// text writes an instant as the zone shows it.
func (r *Recurrence) text(t time.Time) string { return t.In(r.zone.loc).Format(time.RFC3339) }

// counted reports that count, not end, is what limits.
func (r *Recurrence) counted() bool { return r.spec.Count != nil && !r.limit.Equal(r.end) }

func (r *Recurrence) lastOfCount() time.Time { return r.limit.Add(-time.Second) }

// over says why nothing is due at or after limit.
func (r *Recurrence) over() string {
	if r.counted() {
		return fmt.Sprintf("no more after %s, the last of count %d", r.text(r.lastOfCount()), *r.spec.Count)
	}
	return "no more after " + r.text(r.limit) + ", the end"
}
