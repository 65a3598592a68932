package calendar

import "time"

// MinEvery and MaxEvery bound an interval.
const (
	MinEvery = time.Minute
	MaxEvery = 366 * 24 * time.Hour
)

func (r *Recurrence) parseEvery(s Spec) (err error) {
	r.every, err = parseDuration("every", s.Every, MinEvery, MaxEvery)
	return err
}

// nextInterval is the first instant strictly after the given one that lies a whole number of intervals after start. It
// counts in seconds: a time.Duration ends after 292 years.
func (r *Recurrence) nextInterval(after time.Time) time.Time {
	if after.Before(r.start) {
		return r.start
	}
	n := (after.Unix() - r.start.Unix()) / seconds(r.every)
	return r.interval(n + 1)
}

// interval is the instant n intervals after start.
func (r *Recurrence) interval(n int64) time.Time {
	return time.Unix(r.start.Unix()+n*seconds(r.every), 0).UTC()
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }
