package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/schedule"
	"almanac/internal/schema"
)

// shelf keeps lists as a bucket does.
type shelf struct {
	kept map[string][]byte
	puts []string
	down error        // nil: it answers
	asks func(string) // at each call
}

func newShelf() *shelf { return &shelf{kept: map[string][]byte{}} }

func (s *shelf) PutList(_ context.Context, hash string, b []byte) error {
	if s.asks != nil {
		s.asks("put")
	}
	if s.down != nil {
		return s.down
	}
	s.puts = append(s.puts, hash)
	s.kept[hash] = bytes.Clone(b)
	return nil
}

func (s *shelf) List(_ context.Context, hash string, limit int) ([]byte, error) {
	if s.asks != nil {
		s.asks("read")
	}
	if s.down != nil {
		return nil, s.down
	}
	b, ok := s.kept[hash]
	if !ok {
		return nil, failure.New(failure.FileInconsistent, "not there")
	}
	return b[:min(len(b), limit)], nil
}

// only is the one list of a shelf.
func (s *shelf) only(t testing.TB) (hash string, b []byte) {
	t.Helper()
	if len(s.kept) != 1 {
		t.Fatalf("%d lists are kept, want one", len(s.kept))
	}
	for hash, b = range s.kept {
	}
	return hash, b
}

// shelved gives a bench a shelf for the length of a test.
func shelved(t *testing.T, b *bench) *shelf {
	s := newShelf()
	old := b.Lists
	b.Lists = s
	t.Cleanup(func() { b.Lists = old; b.tap.reset() })
	return s
}

func longList(n int) []schedule.Recipient {
	list := make([]schedule.Recipient, n)
	for i := range list {
		list[i].Email = fmt.Sprintf("somebody.%05d@example.com", i)
	}
	return list
}

// apart are lists that do not fit their row.
func apart(t *testing.T, b *bench) {
	t.Run("a list stands apart where it does not fit its row", func(t *testing.T) { whatStandsApart(t, b) })
	t.Run("the list is kept before the row that names it", func(t *testing.T) { listBeforeRow(t, b) })
	t.Run("a list that is missing or changed is refused", func(t *testing.T) { brokenLists(t, b) })
	t.Run("targets of a retry", func(t *testing.T) { targetsApart(t, b) })
	t.Run("lists leave the bodies out and nothing else", func(t *testing.T) { listedWhole(t, b) })
	t.Run("pages of submissions, by state", func(t *testing.T) { submissionPages(t, b) })
}

func create(b *bench, p place, v schedule.Version) error {
	return b.CreateSchedule(context.Background(), v, schedule.Schedule{ID: p.schedule, Workspace: "EWR", NextDue: nextDue}, nil, expires, onSchedule(p, "create"))
}

func whatStandsApart(t *testing.T, b *bench) {
	long := []schedule.Recipient{}
	for i := range 60 {
		long = append(long, schedule.Recipient{Webhook: fmt.Sprintf("https://example.com/%d/%s", i, strings.Repeat("x", 1900)), Secret: "ops"})
	}
	for name, c := range map[string]struct {
		list  []schedule.Recipient
		apart bool
	}{
		"one":                  {longList(1), false},
		"what fits":            {longList(schedule.InlineRecipients), false},
		"one more":             {longList(schedule.InlineRecipients + 1), true},
		"few, and long":        {long, true},
		"as many as there are": {longList(schedule.MaxRecipients), true},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := shelved(t, b), b.place()
			v := versionOf(p, 1)
			v.Recipients = c.list
			if err := create(b, p, v); err != nil {
				t.Fatal(err)
			}
			row := b.row(t, schema.DefinitionKey(p.schedule, 1))
			if (len(s.kept) == 1) != c.apart || (row[schema.RecipientsHash] != nil) != c.apart || (row[schema.RecipientsCount] != nil) != c.apart {
				t.Fatalf("%d lists are kept, want one: %v; the row has %v", len(s.kept), c.apart, row)
			}
			got, err := b.Definition(t.Context(), p.schedule, 1)
			if err != nil || len(got.Recipients) != len(c.list) || got.Recipients[len(c.list)-1] != c.list[len(c.list)-1] {
				t.Errorf("%d of %d recipients come back, %v", len(got.Recipients), len(c.list), err)
			}
			outline, err := b.Outline(t.Context(), p.schedule, 1)
			if err != nil || (len(outline.Recipients) == 0) != c.apart || outline.Name != v.Name || outline.Hash != v.Hash {
				t.Errorf("the outline has %d recipients, %v", len(outline.Recipients), err)
			}
			if c.apart {
				hash, kept := s.only(t)
				if sum := sha256.Sum256(kept); hash != hex.EncodeToString(sum[:]) || outline.List != (schedule.ListRef{Hash: hash, Count: len(c.list)}) {
					t.Errorf("the list is kept as %s and named %+v", hash, outline.List)
				}
			}
		})
	}
	// Equal lists are one object, whoever has them; another list is another.
	s := shelved(t, b)
	for i, n := range []int{501, 501, 502} {
		p := b.place()
		v := versionOf(p, 1)
		v.Recipients = longList(n)
		if err := create(b, p, v); err != nil {
			t.Fatal(err)
		}
		if want := []int{1, 1, 2}[i]; len(s.kept) != want {
			t.Errorf("%d lists after %d schedules, want %d", len(s.kept), i+1, want)
		}
	}
}

func listBeforeRow(t *testing.T, b *bench) {
	s, p := shelved(t, b), b.place()
	v := versionOf(p, 1)
	v.Recipients = longList(600)
	s.down = failure.New(failure.FileUnavailable, "down on purpose")
	b.tap.reset()
	failuretest.Want(t, create(b, p, v), failure.FileUnavailable)
	if n := b.tap.writes.Load(); n != 0 {
		t.Errorf("%d writes although the list is not kept", n)
	}
	s.down = nil
	s.asks = func(what string) {
		if what == "put" && b.tap.writes.Load() != 0 {
			t.Error("a row was written before its list")
		}
	}
	if err := create(b, p, v); err != nil {
		t.Fatal(err)
	}
	sched, err := b.Schedule(t.Context(), p.schedule)
	if err != nil {
		t.Fatal(err)
	}
	two := versionOf(p, 2)
	two.Recipients = longList(700)
	s.down = failure.New(failure.FileUnavailable, "down on purpose")
	b.tap.reset()
	failuretest.Want(t, b.EditSchedule(t.Context(), two, sched, sched.NextDue, nil, expires, actOf(p.schedule, "act-2", "edit")), failure.FileUnavailable)
	failuretest.Want(t, b.PutGroup(t.Context(), groupOf(p.schedule, 1, longList(600)...), onGroup(p.schedule, "act-1")), failure.FileUnavailable)
	if n := b.tap.writes.Load(); n != 0 {
		t.Errorf("%d writes although the list is not kept", n)
	}
	s.down = nil
	b.tap.reset()
	if err := b.EditSchedule(t.Context(), two, sched, sched.NextDue, nil, expires, actOf(p.schedule, "act-2", "edit")); err != nil {
		t.Fatal(err)
	}
	s.asks = nil
	for n, want := range map[int]int{1: 600, 2: 700} {
		if got, err := b.Definition(t.Context(), p.schedule, n); err != nil || len(got.Recipients) != want {
			t.Errorf("version %d has %d recipients, %v; want %d", n, len(got.Recipients), err, want)
		}
	}
	// A second create is refused by the row; the list that it kept stands, and hurts nobody.
	v.Recipients = longList(800)
	var c *schedule.Conflict
	if err := b.CreateSchedule(t.Context(), v, schedule.Schedule{ID: p.schedule}, nil, expires, actOf(p.schedule, "act-3", "create")); !errors.As(err, &c) || len(s.kept) != 3 {
		t.Errorf("%v, %d lists; want a conflict", err, len(s.kept))
	}
	if got, err := b.Definition(t.Context(), p.schedule, 1); err != nil || len(got.Recipients) != 600 {
		t.Errorf("version 1 has %d recipients, %v", len(got.Recipients), err)
	}
}

func brokenLists(t *testing.T, b *bench) {
	for name, c := range map[string]struct {
		do   func(s *shelf, hash string)
		code failure.Code
		says string
	}{
		"missing":             {func(s *shelf, hash string) { delete(s.kept, hash) }, failure.DefinitionInvalid, "not there any more"},
		"one byte changed":    {func(s *shelf, hash string) { s.kept[hash][20] ^= 1 }, failure.DefinitionInvalid, "another SHA-256"},
		"empty":               {func(s *shelf, hash string) { s.kept[hash] = nil }, failure.DefinitionInvalid, "another SHA-256"},
		"grown beyond bounds": {func(s *shelf, hash string) { s.kept[hash] = make([]byte, schedule.MaxRecipientsBytes+2) }, failure.DefinitionInvalid, "another SHA-256"},
		"unreachable":         {func(s *shelf, _ string) { s.down = failure.New(failure.FileUnavailable, "down") }, failure.FileUnavailable, "down"},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := shelved(t, b), b.place()
			v := versionOf(p, 1)
			v.Recipients = longList(501)
			if err := create(b, p, v); err != nil {
				t.Fatal(err)
			}
			hash, _ := s.only(t)
			c.do(s, hash)
			got, err := b.Definition(t.Context(), p.schedule, 1)
			failuretest.Want(t, err, c.code)
			if !strings.Contains(err.Error(), c.says) || c.code == failure.DefinitionInvalid && !strings.Contains(err.Error(), schema.ListKey(hash)) {
				t.Errorf("%v; want it to say %q", err, c.says)
			}
			if len(got.Recipients) != 0 || got.Name != v.Name {
				t.Errorf("%d recipients come back, of %q", len(got.Recipients), got.Name)
			}
			if _, err := b.Outline(t.Context(), p.schedule, 1); err != nil {
				t.Errorf("outline: %v", err)
			}
		})
	}
	// A row that counts otherwise than its list, and a list that is none.
	s, p := shelved(t, b), b.place()
	none := []byte(`{"email":"a"}`)
	sum := sha256.Sum256(none)
	hash := hex.EncodeToString(sum[:])
	s.kept[hash] = none
	b.write(t, world{}.add(schema.DefinitionKey(p.schedule, 1), row{schema.Body: "{}", schema.Version: 1, schema.RecipientsHash: hash, schema.RecipientsCount: 1}))
	_, err := b.Definition(t.Context(), p.schedule, 1)
	failuretest.Want(t, err, failure.DefinitionInvalid)
	two := []byte(`[{"email":"a@x.com"},{"email":"b@x.com"}]`)
	sum = sha256.Sum256(two)
	hash = hex.EncodeToString(sum[:])
	s.kept[hash] = two
	b.write(t, world{}.add(schema.DefinitionKey(p.schedule, 2), row{schema.Body: "{}", schema.Version: 2, schema.RecipientsHash: hash, schema.RecipientsCount: 3}))
	_, err = b.Definition(t.Context(), p.schedule, 2)
	failuretest.Want(t, err, failure.DefinitionInvalid)
	if !strings.Contains(err.Error(), "of 3 recipients") || !strings.Contains(err.Error(), "has 2 entries") {
		t.Error(err)
	}
	// A function without a bucket reads outlines, and says so of the rest.
	b.Lists = nil
	_, err = b.Definition(t.Context(), p.schedule, 2)
	failuretest.Want(t, err, failure.InternalError)
	q := b.place()
	v := versionOf(q, 1)
	v.Recipients = longList(501)
	failuretest.Want(t, create(b, q, v), failure.InternalError)
	if _, err := b.Outline(t.Context(), p.schedule, 2); err != nil {
		t.Error(err)
	}
}

func targetsApart(t *testing.T, b *bench) {
	for _, n := range []int{1, schedule.InlineRecipients, schedule.InlineRecipients + 1, schedule.MaxRecipients} {
		s, p := shelved(t, b), b.place()
		r := schedule.Run{Schedule: p.schedule, Occurrence: p.occurrence, Nominal: nominal, Manual: true, Version: 1, AttemptsLeft: 5, WakeAt: wall, CreatedAt: wall, RetryOf: "s@first"}
		for i := range n {
			r.Targets = append(r.Targets, fmt.Sprintf("email#%064x", i))
		}
		if err := b.Admit(t.Context(), schedule.Admission{Run: r, Token: "dispatcher-1", TTL: expires}); err != nil {
			t.Fatal(err)
		}
		got, err := b.Store.Run(t.Context(), p.run())
		if err != nil || (len(got.Targets) == 0) != (n > schedule.InlineRecipients) || got.RetryOf != r.RetryOf {
			t.Fatalf("%d targets stand on the row, %v", len(got.Targets), err)
		}
		if len(got.Targets) > 0 != (got.TargetList == schedule.ListRef{}) || len(s.kept) > 1 {
			t.Errorf("%d on the row, %+v apart, %d lists", len(got.Targets), got.TargetList, len(s.kept))
		}
		targets, err := b.RunTargets(t.Context(), got)
		if err != nil || len(targets) != n || targets[n-1] != r.Targets[n-1] {
			t.Errorf("%d of %d targets, %v", len(targets), n, err)
		}
		if n > schedule.InlineRecipients {
			hash, _ := s.only(t)
			delete(s.kept, hash)
			_, err := b.RunTargets(t.Context(), got)
			failuretest.Want(t, err, failure.DefinitionInvalid)
		}
	}
	s, p := shelved(t, b), b.place()
	s.down = failure.New(failure.FileUnavailable, "down on purpose")
	r := schedule.Run{Schedule: p.schedule, Occurrence: p.occurrence, Nominal: nominal, RetryOf: "s@first", Targets: make([]string, 501)}
	failuretest.Want(t, b.Admit(t.Context(), schedule.Admission{Run: r, Token: "d", TTL: expires}), failure.FileUnavailable)
	if _, err := b.Store.Run(t.Context(), p.run()); !errors.Is(err, schedule.ErrNotFound) {
		t.Errorf("a run without its targets: %v", err)
	}
	if targets, err := b.RunTargets(t.Context(), schedule.Run{}); err != nil || len(targets) != 0 {
		t.Errorf("a run that is no retry has %d targets, %v", len(targets), err)
	}
}

// listedWhole compares what a list shows of a submission with the row itself: every attribute besides the frozen body.
func listedWhole(t *testing.T, b *bench) {
	p := b.place()
	said := row{schema.FeedbackAt: wall, schema.FeedbackType: "Permanent"}
	full := subRow(p, "unknown").with(row{schema.OwnerUntil: wall, schema.Resends: 2, schema.ResendWish: "w", schema.ResendBy: "ann", schema.ResendWhy: "because",
		schema.NotAccepted: true, schema.ProviderID: "ses-1", schema.Reason: "r", schema.Detail: "d", schema.RevokedAt: wall, schema.RetryAt: wall,
		schema.Bounce: said, schema.Complaint: said, schema.Rejection: said, schema.BounceAgain: said, schema.ComplaintAgain: said, schema.RejectionAgain: said})
	b.write(t, world{}.add(p.subKey(), full))
	one, err := b.Submission(t.Context(), p.run(), "email", someoneHash)
	if err != nil || one.Frozen.BodyHash == "" {
		t.Fatalf("%+v, %v", one, err)
	}
	one.Frozen.Date, one.Frozen.Boundary, one.Frozen.BodyHash = time.Time{}, "", ""
	list, err := b.Submissions(t.Context(), p.run())
	if err != nil || len(list) != 1 || fmt.Sprintf("%+v", list[0]) != fmt.Sprintf("%+v", one) {
		t.Errorf("listed %+v, %v\nwant   %+v", list, err, one)
	}
}

func submissionPages(t *testing.T, b *bench) {
	p := b.place()
	states := []string{"submitted", "unknown", "skipped", "not_sent", "pending", "submitted", "submitted"}
	w := world{}
	const n = 23
	for i := range n {
		w.add(schema.SubmissionKey(p.run(), "email", fmt.Sprintf("%04x", i)), subRow(p, states[i%len(states)]))
	}
	b.write(t, w)
	for _, state := range []string{"", "submitted", "unknown", "skipped", "not_sent", "pending"} {
		for _, limit := range []int{1, 3, 4, 10, 100} {
			var got []string
			from := ""
			for {
				subs, next, err := b.SubmissionPage(t.Context(), p.run(), schedule.SubmissionState(state), from, limit)
				if err != nil || len(subs) > limit || next != "" && len(subs) < limit {
					t.Fatalf("%q by %d: %d, next %q, %v", state, limit, len(subs), next, err)
				}
				for _, s := range subs {
					got = append(got, s.RecipientHash)
				}
				if from = next; from == "" {
					break
				}
			}
			var want []string
			for i := range n {
				if state == "" || states[i%len(states)] == state {
					want = append(want, fmt.Sprintf("%04x", i))
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%q by %d: %v, want %v", state, limit, got, want)
			}
		}
	}
	other := b.place()
	_, next, err := b.SubmissionPage(t.Context(), p.run(), "", "", 3)
	if err != nil || next == "" {
		t.Fatal(next, err)
	}
	for name, c := range map[string]struct{ run, cursor string }{
		"another run's": {other.run(), next}, "nobody's": {p.run(), "x"}, "no submission's": {p.run(), strings.Replace(next, schema.SubPrefix, schema.AccessPrefix, 1)},
	} {
		var ps schedule.Problems
		if _, _, err := b.SubmissionPage(t.Context(), c.run, "", c.cursor, 3); !errors.As(err, &ps) || ps[0].Field != "cursor" {
			t.Errorf("%s cursor: %v", name, err)
		}
	}
}
