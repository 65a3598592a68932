package schedule_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/schema"
)

// check asserts what must hold of a run whatever happened on its way; recipients are spelled as in definition.
func (w *world) check(id string, recipients ...string) error {
	r := w.run(id)
	if !r.Settled() {
		return fmt.Errorf("the run is %s", r.State)
	}
	for _, it := range w.db.Items("Schedules") {
		if text(it, schema.OpenShard) != "" {
			return fmt.Errorf("%s / %s is still in the open-run index", text(it, schema.PK), text(it, schema.SK))
		}
	}
	if r.LeaseOwner != "" {
		return fmt.Errorf("a settled run has a lease")
	}
	if s := w.schedule(r.Schedule); s.OpenRun != "" || s.LastRun != r.Occurrence {
		return fmt.Errorf("the schedule says open_run %q, last run %q", s.OpenRun, s.LastRun)
	}
	if r.File != nil {
		sum := sha256.Sum256([]byte(w.object(r.File.Key)))
		if hex.EncodeToString(sum[:]) != r.File.SHA256 {
			return fmt.Errorf("the object's digest is not the recorded one")
		}
	}
	if n := len(w.objects()); n > r.Attempts {
		return fmt.Errorf("%d objects of %d attempts", n, r.Attempts)
	}
	byAddress := map[string]schedule.Submission{}
	for _, s := range w.subs(id) {
		byAddress[s.Recipient] = s
	}
	submitted, skipped := 0, 0
	for _, name := range recipients {
		var err error
		var s schedule.Submission
		if strings.Contains(name, "@") {
			s = byAddress[name]
			err = w.checkMail(r, s, name)
		} else {
			s = byAddress[w.hooks.address(name)]
			err = w.checkPosts(r, s, name)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		switch s.State {
		case schedule.Submitted:
			submitted++
		case schedule.NotDelivered:
			skipped++
		case "":
			if r.File != nil {
				return fmt.Errorf("%s has no submission although a file is recorded", name)
			}
		}
	}
	// An answer that comes after a run failed as delivery_unknown is recorded on its submission; the run's counts stay.
	late := r.ErrorCode == string(failure.DeliveryUnknown) && submitted == r.Submitted+1
	if r.Submitted != submitted && !late || r.SkippedN != skipped {
		return fmt.Errorf("the run counts %d submitted and %d skipped; the rows are %d and %d", r.Submitted, r.SkippedN, submitted, skipped)
	}
	if r.State == schedule.Succeeded && submitted+skipped != len(recipients) {
		return fmt.Errorf("succeeded with %d outcomes of %d", submitted+skipped, len(recipients))
	}
	return nil
}

func (w *world) checkMail(r schedule.Run, s schedule.Submission, name string) error {
	got := len(w.mail.to(name))
	switch {
	case got > 1:
		return fmt.Errorf("%d mails", got)
	case s.State == schedule.Pending:
		return fmt.Errorf("pending in a settled run")
	case s.State == schedule.Submitted && got != 1:
		return fmt.Errorf("submitted, and %d mails", got)
	case (s.State == schedule.NotSent || s.State == schedule.NotDelivered || s.State == "") && got != 0:
		return fmt.Errorf("%s, and %d mails", s.State, got)
	case s.State == schedule.Unknown && r.State != schedule.Failed:
		return fmt.Errorf("unknown, and the run %s", r.State)
	}
	return nil
}

func (w *world) checkPosts(_ schedule.Run, s schedule.Submission, name string) error {
	got := w.hooks.to(name)
	for _, p := range got {
		if p.key != got[0].key || p.body != got[0].body || p.key == "" {
			return fmt.Errorf("two tries differ: %q %q and %q %q", got[0].key, got[0].body, p.key, p.body)
		}
	}
	switch n := taken(got); {
	case s.State == schedule.Pending:
		return fmt.Errorf("pending in a settled run")
	case s.State == schedule.Submitted && n == 0:
		return fmt.Errorf("submitted, and nothing was taken")
	case (s.State == schedule.NotSent || s.State == schedule.NotDelivered || s.State == "") && n != 0:
		return fmt.Errorf("%s, and taken %d times", s.State, n)
	}
	return nil
}

var recipients3 = []string{"a@example.com", "b", "c"}

// checkTold asserts that an event was told at least once, and under one id; or not at all where it did not come about.
func (w *world) checkTold(kind string, came bool) error {
	want, ids := []string(nil), map[string]bool{}
	if came {
		want = []string{kind}
	}
	if got := w.toldOf(w.t); !slices.Equal(got, want) {
		return fmt.Errorf("the receiver was told %v, want %v", got, want)
	}
	letters := w.mail.to("boss@example.com")
	for _, l := range letters {
		header, _, _ := l.parts(w.t)
		ids[header.Get("X-Almanac-Notice")+string(l.raw)] = true
	}
	if len(ids) != len(want) {
		return fmt.Errorf("%d mails of %d different contents, want %d", len(letters), len(ids), len(want))
	}
	if n := w.left(); n > 0 {
		return fmt.Errorf("%d notices are left", n)
	}
	return nil
}
