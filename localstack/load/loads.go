package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"almanac/internal/load"
	"almanac/internal/schedule"
)

// burst: many schedules are due in one minute. Each has a mail, each fourth a webhook beside it.
func (s *site) burst(ctx context.Context, o options) error {
	var ds []schedule.Definition
	for n := range o.schedules {
		d := s.definition(fmt.Sprintf("%05d", n), schedule.Recipient{Email: fmt.Sprintf("a%d@example.com", n)})
		if n%4 == 0 {
			d.Recipients = append(d.Recipients, s.hook("all"))
		}
		ds = append(ds, d)
	}
	if err := s.save(ctx, ds); err != nil {
		return err
	}
	return s.through(ctx, "due at once", o.schedules, "all")
}

// through admits and drains what was saved, checks it and shows it.
func (s *site) through(ctx context.Context, name string, mails int, paths ...string) error {
	if err := errors.Join(s.admits(ctx), s.drained(ctx)); err != nil {
		return err
	}
	out, err := s.outside(ctx, mails, paths...)
	if err != nil {
		return err
	}
	runs, err := s.judge(ctx, out, nil)
	s.show(name, runs)
	return err
}

// list: one schedule with many recipients, over as many invocations as it takes; and how much memory these take.
func (s *site) list(ctx context.Context, o options) error {
	var to []schedule.Recipient
	for n := range o.recipients {
		to = append(to, schedule.Recipient{Email: fmt.Sprintf("a%05d@example.com", n)})
	}
	if err := s.save(ctx, []schedule.Definition{s.definition("one", to...)}); err != nil {
		return err
	}
	watched, stop := context.WithCancel(ctx)
	peak := make(chan int)
	go func() { peak <- s.watch(watched, s.outputs["DeliverFunction"]) }()
	err := s.through(ctx, "one schedule", o.recipients)
	stop()
	fmt.Printf("  peak memory of the deliver function: %d MiB resident\n", <-peak>>10)
	if err != nil {
		return err
	}
	mails, err := s.mails(ctx)
	var sent []time.Duration
	for _, m := range mails {
		sent = append(sent, m.Received.Sub(s.began))
	}
	load.Histogram(os.Stdout, load.Column{Name: "received", After: sent})
	return err
}

// watch looks at the processes of a function until it is told to stop, and returns the most memory that one of them had
// resident, in KiB. The kernel keeps the peak, so that no moment is missed while a process lives.
func (s *site) watch(ctx context.Context, function string) (most int) {
	for {
		processes, _ := filepath.Glob("/proc/[0-9]*")
		for _, p := range processes {
			if env, err := os.ReadFile(p + "/environ"); err != nil || !strings.Contains(string(env), "AWS_LAMBDA_FUNCTION_NAME="+function+"\x00") {
				continue // it has ended, or is none of ours
			}
			status, _ := os.ReadFile(p + "/status")
			if _, rest, ok := strings.Cut(string(status), "VmHWM:"); ok {
				n, _ := strconv.Atoi(strings.Fields(rest)[0])
				most = max(most, n)
			}
		}
		select {
		case <-ctx.Done():
			return most
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// slow: receivers that take a second and a half for each request, just within the local stage's time for one, take up
// functions; the others' schedules go past them.
func (s *site) slow(ctx context.Context, o options) error {
	if err := s.answers(ctx, "slow", 200, "1500ms"); err != nil {
		return err
	}
	var ds []schedule.Definition
	for n := range o.slow {
		ds = append(ds, s.definition(fmt.Sprintf("slow-%04d", n), s.hook("slow")))
	}
	for n := range 40 {
		ds = append(ds, s.definition(fmt.Sprintf("quick-%04d", n), schedule.Recipient{Email: fmt.Sprintf("a%d@example.com", n)}))
	}
	if err := s.save(ctx, ds); err != nil {
		return err
	}
	if err := errors.Join(s.admits(ctx), s.drained(ctx)); err != nil {
		return err
	}
	out, err := s.outside(ctx, 40, "slow")
	if err != nil {
		return err
	}
	runs, err := s.judge(ctx, out, nil)
	slowly := func(r schedule.Run) bool { return strings.HasPrefix(r.Schedule, s.name+"slow") }
	s.show("the quick ones", slices.DeleteFunc(slices.Clone(runs), slowly))
	s.show("the slow ones", slices.DeleteFunc(runs, func(r schedule.Run) bool { return !slowly(r) }))
	return err
}

// The outage: a schedule is due twenty-four times, five seconds of this machine apart. Its receiver is down from the sixth
// to before the eighteenth. The local stage asks five times within 16 seconds where others ask within 15 minutes.
const (
	occasions = 24
	downFrom  = 6
	upAgain   = 18
	apart     = 5 * time.Second
)

// outage lets time pass over a receiver that is down and comes back.
func (s *site) outage(ctx context.Context, _ options) error {
	d := s.definition("down", schedule.Recipient{Email: "a@example.com"}, s.hook("down"))
	never := schedule.NeverPause
	d.Recurrence.Cron, d.Recurrence.End, d.PauseAfter = "*/5 * * * *", s.due.Add(5*occasions*time.Minute).Format(time.RFC3339), &never
	d.Notify = []schedule.Recipient{s.hook("told")}
	if err := s.save(ctx, []schedule.Definition{d}); err != nil {
		return err
	}
	s.promises[0].Occurrences, s.began = nil, time.Now()
	for n := range occasions {
		switch n {
		case downFrom:
			if err := s.answers(ctx, "down", 503, ""); err != nil {
				return err
			}
		case upAgain:
			if err := s.answers(ctx, "down", 200, ""); err != nil {
				return err
			}
		}
		at := s.due.Add(time.Duration(n) * 5 * time.Minute)
		s.promises[0].Occurrences = append(s.promises[0].Occurrences, schedule.OccurrenceKey(at))
		if err := s.freeze(ctx, at); err != nil {
			return err
		}
		if _, err := s.tick(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(s.began.Add(time.Duration(n+1) * apart))):
		}
	}
	if err := s.drained(ctx); err != nil {
		return err
	}
	return s.afterOutage(ctx)
}

// afterOutage checks each run against what its receiver saw of it, and sends what is missing.
func (s *site) afterOutage(ctx context.Context) error {
	posts, err := s.posts(ctx, "down")
	if err != nil {
		return err
	}
	asked, refused := map[string]int{}, map[string]int{}
	for _, p := range posts {
		run, _, _ := strings.Cut(p.ID, "/")
		asked[run]++
		if p.Answer == 503 {
			refused[run]++
		}
	}
	out, err := s.outside(ctx, occasions, "down")
	if err != nil {
		return err
	}
	var failed []string
	runs, err := s.judge(ctx, out, func(r schedule.Run) error {
		budget := schedule.DefaultTiming().MaxAttempts
		switch n, no := asked[r.ID()], refused[r.ID()]; {
		case r.State == schedule.Failed && r.ErrorCode == "attempts_exhausted" && n == budget && no == budget:
			failed = append(failed, r.ID())
		case r.State == schedule.Succeeded && n == no+1 && n <= budget:
		default:
			return fmt.Errorf("%s %s; its receiver was asked %d times and refused %d; want 1 taken, or %d refused", r.State, r.ErrorCode, n, no, budget)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.show("due each five minutes", runs)
	if len(failed) == 0 || len(failed) > upAgain-downFrom {
		return fmt.Errorf("%d runs failed of %d that were due while the receiver was down; want some", len(failed), upAgain-downFrom)
	}
	if err := s.told(ctx, "failed", "recovered"); err != nil {
		return err
	}
	fmt.Printf("  %d of %d runs that were due in the outage failed; the streak was told when it began and when it ended\n", len(failed), upAgain-downFrom)
	return s.again(ctx, failed)
}

// told wants exactly these notices, in order.
func (s *site) told(ctx context.Context, want ...string) error {
	var kinds []string
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
		posts, err := s.posts(ctx, "told")
		if err != nil {
			return err
		}
		kinds = nil
		for _, p := range posts {
			kinds = append(kinds, strings.Split(p.ID, "#")[1])
		}
		if len(kinds) >= len(want) {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
	if !slices.Equal(kinds, want) {
		return fmt.Errorf("told %v, want %v", kinds, want)
	}
	return nil
}

// again retries what failed as new runs: each recorded file goes to the receiver, and to nobody else.
func (s *site) again(ctx context.Context, failed []string) error {
	mails, err := s.mails(ctx)
	if err != nil {
		return err
	}
	var ids []string
	for _, id := range failed {
		r, _, err := s.editor.Retry(ctx, id, schedule.RetryRequest{}, "the receiver is up again", "load", "retry "+id, "h")
		if err != nil {
			return err
		}
		ids = append(ids, r.ID())
	}
	if err := s.drained(ctx); err != nil {
		return err
	}
	posts, err := s.posts(ctx, "down")
	if err != nil {
		return err
	}
	taken := map[string]int{}
	for _, p := range posts {
		if run, _, _ := strings.Cut(p.ID, "/"); p.Answer == 200 {
			taken[run]++
		}
	}
	for _, id := range ids {
		if r, err := s.store.Run(ctx, id); err != nil || r.State != schedule.Succeeded || taken[id] != 1 {
			b, _ := json.Marshal(r)
			return fmt.Errorf("retry %s: %v, taken %d times: %s", id, err, taken[id], b)
		}
	}
	if after, err := s.mails(ctx); err != nil || len(after) != len(mails) {
		return fmt.Errorf("%d mails after the retries, %d before; want none more (%v)", len(after), len(mails), err)
	}
	fmt.Printf("  retry as new sent %d files to the receiver, each once, and to nobody else\n", len(ids))
	return nil
}
