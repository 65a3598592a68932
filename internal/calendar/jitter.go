package calendar

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"
)

// MaxJitter is the longest delay of an admission; with an interval half of that is the most, if less.
const MaxJitter = time.Hour

func (r *Recurrence) parseJitter(s Spec) (err error) {
	if s.Jitter == "" {
		return nil
	}
	most := MaxJitter
	if every, err := parseDuration("every", s.Every, MinEvery, MaxEvery); err == nil {
		most = min(most, (every / 2).Truncate(time.Second))
	}
	r.jitter, err = parseDuration("jitter", s.Jitter, time.Second, most)
	return err
}

// Delay is how much later than its nominal time an occurrence is admitted: whole seconds, at least 0 and less than the
// jitter; 0 without one. It follows from the schedule's id and the nominal time alone, so each tick and each try finds
// the same, and it is spread evenly over schedules that are due together. The nominal time, and with it the occurrence's
// key, stays what it is.
func (r *Recurrence) Delay(id string, nominal time.Time) time.Duration {
	if r.jitter == 0 {
		return 0
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s:%d", len(id), id, nominal.Unix()))
	return time.Duration(binary.BigEndian.Uint64(sum[:])%uint64(seconds(r.jitter))) * time.Second
}
