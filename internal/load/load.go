// Package load holds what a load must have left behind, whichever cloud it ran on, and shows how it went.
package load

import (
	"context"
	"fmt"
	"slices"

	"almanac/internal/schedule"
)

// Ledger reads what the table says.
type Ledger interface {
	Runs(ctx context.Context, schedule, from string, limit int) ([]schedule.Run, string, error)
	Submissions(ctx context.Context, run string) ([]schedule.Submission, error)
}

// Promise is what one schedule owes: each of these occurrences exactly once, to each of these addresses.
type Promise struct {
	Schedule    string
	Occurrences []string // occurrence keys
	Addresses   []string
}

// Outside is what was found outside the table.
type Outside struct {
	Files    []string       // keys of all files of the promised schedules
	Accepted map[string]int // accepted requests, by At(run, address)
}

// At names the requests to one address for one run.
func At(run, address string) string { return run + " " + address }

// Kept reads what became of promises, and lists every one that was broken: a run that is missing, that there is twice or
// that has not settled as it must, a file that is not the one of its run, a request that was not accepted exactly once.
// settle says what a run must have come to; nil: it succeeded.
func Kept(ctx context.Context, l Ledger, promises []Promise, out Outside, settle func(schedule.Run) error) (runs []schedule.Run, broken []string, err error) {
	k := keeper{files: map[string]int{}, left: map[string]int{}}
	for _, key := range out.Files {
		k.files[key]++
	}
	for at, n := range out.Accepted {
		k.left[at] = n
	}
	if settle == nil {
		settle = Succeeded
	}
	for _, p := range promises {
		rs, err := all(ctx, l, p.Schedule)
		if err != nil {
			return runs, k.broken, err
		}
		runs = append(runs, rs...)
		k.occurrences(p, rs)
		for _, r := range rs {
			if err := settle(r); err != nil {
				k.breaks("%s: %v", r.ID(), err)
			}
			k.file(r)
			subs, err := l.Submissions(ctx, r.ID())
			if err != nil {
				return runs, k.broken, err
			}
			k.requests(r, p, subs)
		}
	}
	for key := range k.files {
		k.breaks("file %s is no run's", key)
	}
	for at, n := range k.left {
		k.breaks("%s: %d requests were accepted that no run accounts for", at, n)
	}
	slices.Sort(k.broken)
	return runs, k.broken, nil
}

// Succeeded is how a run ends where nothing went wrong: with no attempt but the first, and those that yielded.
func Succeeded(r schedule.Run) error {
	if r.State != schedule.Succeeded || r.Attempts != r.Yields+1 {
		return fmt.Errorf("%s after %d attempts and %d yields %s %s; want succeeded at the first attempt", r.State, r.Attempts, r.Yields, r.ErrorCode, r.ErrorText)
	}
	return nil
}

func all(ctx context.Context, l Ledger, id string) (runs []schedule.Run, err error) {
	for from := ""; ; {
		page, next, err := l.Runs(ctx, id, from, 0)
		if err != nil {
			return runs, err
		}
		runs = append(runs, page...)
		if from = next; from == "" {
			return runs, nil
		}
	}
}

type keeper struct {
	files  map[string]int
	left   map[string]int
	broken []string
}

func (k *keeper) breaks(format string, args ...any) {
	k.broken = append(k.broken, fmt.Sprintf(format, args...))
}

func (k *keeper) occurrences(p Promise, rs []schedule.Run) {
	seen := map[string]bool{}
	for _, r := range rs {
		if !slices.Contains(p.Occurrences, r.Occurrence) || seen[r.Occurrence] {
			k.breaks("%s: nobody owes this run, or it is there twice", r.ID())
		}
		seen[r.Occurrence] = true
	}
	for _, o := range p.Occurrences {
		if !seen[o] {
			k.breaks("%s@%s: lost, there is no such run", p.Schedule, o)
		}
	}
}

func (k *keeper) file(r schedule.Run) {
	switch {
	case r.File == nil:
		k.breaks("%s: no file is recorded", r.ID())
	case k.files[r.File.Key] != 1:
		k.breaks("%s: %d files at %s", r.ID(), k.files[r.File.Key], r.File.Key)
	default:
		delete(k.files, r.File.Key)
	}
}

func (k *keeper) requests(r schedule.Run, p Promise, subs []schedule.Submission) {
	state, counted := map[string]schedule.SubmissionState{}, 0
	for _, s := range subs {
		if state[s.Recipient] != "" {
			k.breaks("%s: two submissions for %s", r.ID(), s.Recipient)
		}
		if state[s.Recipient] = s.State; s.State == schedule.Submitted {
			counted++
		}
	}
	if len(subs) != len(p.Addresses) || r.Submitted != counted {
		k.breaks("%s: %d submissions for %d addresses; %d were submitted, the run says %d", r.ID(), len(subs), len(p.Addresses), counted, r.Submitted)
	}
	for _, a := range p.Addresses {
		n := k.left[At(r.ID(), a)]
		delete(k.left, At(r.ID(), a))
		switch {
		case !r.Settled():
			k.breaks("%s: not settled", r.ID())
		case state[a] == schedule.Submitted && n != 1, state[a] != schedule.Submitted && n != 0:
			k.breaks("%s: %s is %q, and %d requests were accepted", r.ID(), a, state[a], n)
		case r.State == schedule.Succeeded && state[a] != schedule.Submitted:
			k.breaks("%s: succeeded, and %s is %q", r.ID(), a, state[a])
		}
	}
}
