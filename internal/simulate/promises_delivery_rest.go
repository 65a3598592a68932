package simulate

import (
	"fmt"
	"strings"
	"time"

	"almanac/internal/channel"
	"almanac/internal/schedule"
	"almanac/internal/schema"
)

// settleWithin is how long a run may take until it settles, while its queue is read, its rule fires and sending is on: its
// attempts, each with its lease and the longest wait before it. A run that nobody begins is offered again by the sweep;
// only where that is off do the dead letters end it, which takes a day and more, and idle says so.
func (w *World) settleWithin() time.Duration {
	t := w.Schedule
	attempt := DeliverTime + 2*t.LeaseMargin.Std() + t.BackoffMax.Std() + t.SweepMax.Std()
	return time.Duration(t.MaxAttempts) * attempt
}

// everyRunSettled is liveness, at rest.
func everyRunSettled(w *World) error {
	for pk, rows := range w.delivery.rows {
		if !strings.HasPrefix(pk, "SCHED#") {
			continue
		}
		for _, it := range rows {
			if !isRun(it) {
				continue
			}
			took := wallOf(it, schema.SettledAt).Sub(wallOf(it, schema.CreatedAt))
			switch {
			case !settled(it):
				return fmt.Errorf("%s is %s", runID(it), stateNow(it))
			case figure(it, schema.Attempts)-figure(it, schema.Yields) > w.Schedule.MaxAttempts:
				return fmt.Errorf("%s took %d attempts", runID(it), figure(it, schema.Attempts))
			case took > w.settleWithin()+w.delivery.idle:
				return fmt.Errorf("%s took %s; want at most %s, and %s that nothing worked", runID(it), took, w.settleWithin(), w.delivery.idle)
			}
		}
	}
	return nil
}

// receiversAgree holds the submissions at rest against what reached their receivers.
func receiversAgree(w *World) error {
	p := &w.delivery
	for pk, rows := range p.rows {
		run, is := strings.CutPrefix(pk, "RUN#")
		if !is {
			continue
		}
		for sk, it := range rows {
			target, is := strings.CutPrefix(sk, schema.SubPrefix)
			if !is {
				continue
			}
			taken, state := p.taken[run+"/"+target], schedule.SubmissionState(Text(it, schema.State))
			reason := Text(it, schema.Reason)
			never := state == schedule.NotSent || state == schedule.NotDelivered && (reason == channel.ReasonRemoved || reason == channel.ReasonUnsubscribed || reason == channel.ReasonSuppressed) && !strings.Contains(Text(it, schema.Detail), "earlier request")
			byHand := strings.HasPrefix(Text(it, schema.Detail), "resolved by")
			switch {
			case state == schedule.Pending:
				return fmt.Errorf("%s to %s is pending", run, target)
			case taken > 1+figure(it, schema.Resends):
				return fmt.Errorf("%s reached %s under %d keys, and a person had it sent again %d times", run, target, taken, figure(it, schema.Resends))
			case state == schedule.Submitted && taken == 0 && !byHand:
				return fmt.Errorf("%s to %s is submitted, and nothing was taken", run, target)
			case never && taken > 0:
				return fmt.Errorf("%s to %s is %s, and was taken", run, target, state)
			}
		}
	}
	return nil
}

// everyNoticeTold is that each notice that was ever put reached its receiver, at rest.
func everyNoticeTold(w *World) error {
	for id := range w.delivery.notices {
		if w.delivery.asked[id] == 0 {
			return fmt.Errorf("%s was not told", id)
		}
	}
	return nil
}
