package snapshot

import (
	"context"
	"errors"
	"time"
)

// failedShard counts final failures.
func (t *reconcileTick) failedShard(ctx context.Context, shard int) {
	t.eachSettled(ctx, t.Ledger.Failures, shard, t.Clocks.Wall(), func(r Run) error {
		head, err := t.Ledger.Head(ctx, r.Period)
		if err == nil && head.Latest == r.Version {
			t.FinalFailures++
		}
		return err
	})
}

// cleanShard removes what runs left that settled long enough ago.
func (t *reconcileTick) cleanShard(ctx context.Context, shard int) {
	until := t.Clocks.Wall().Add(-t.Timing.CleanAfter.Std())
	for _, list := range []settledList{t.Ledger.Leftovers, t.Ledger.Failures} {
		t.eachSettled(ctx, list, shard, until, func(r Run) error {
			removed, err := t.clean(ctx, r)
			if err != nil {
				return err
			}
			t.Cleaned++
			t.Removed += removed
			t.Log.Info("leftovers removed", "run", r.ID(), "state", r.State, "objects", removed)
			return t.Ledger.Cleaned(ctx, r.ID())
		})
	}
}

type settledList func(ctx context.Context, shard int, until time.Time, from string, limit int) (runs []string, next string, err error)

// eachSettled does something to each run of a list that has settled for good. The index only suggests.
func (t *reconcileTick) eachSettled(ctx context.Context, list settledList, shard int, until time.Time, do func(Run) error) {
	for from := ""; t.timeLeft(ctx); {
		ids, next, err := list(ctx, shard, until, from, t.Timing.PageSize)
		if err != nil {
			t.trouble("settled runs could not be read", err, "shard", shard)
			return
		}
		for _, id := range ids {
			if !t.timeLeft(ctx) {
				return
			}
			r, err := t.Ledger.Run(ctx, id)
			if errors.Is(err, ErrNotFound) || err == nil && !r.Final() {
				continue // the index was behind
			}
			if err == nil {
				err = do(r)
			}
			if err != nil {
				t.trouble("a settled run could not be handled; the next tick tries again", err, "run", id)
			}
		}
		if from = next; from == "" {
			return
		}
	}
}

// removeAtOnce is how many objects are removed in one call: as many as S3 takes.
// Source: https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html
const removeAtOnce = 1000

// clean removes a run's objects that no manifest needs, under the run's own prefix only. Of a published run it keeps the
// manifest and what that names; a manifest that cannot be read keeps everything.
func (t *reconcileTick) clean(ctx context.Context, r Run) (removed int, err error) {
	kept := map[string]bool{}
	if r.State == Published {
		m, err := readManifest(ctx, t.Objects, r.Period, r.Version, r.Manifest())
		if err != nil {
			return 0, err
		}
		kept[ManifestKey(r.Period, r.Version, r.Manifest())] = true
		for _, c := range m.Chunks {
			kept[c.Object] = true
		}
	}
	var doomed []string
	remove := func() error {
		if len(doomed) == 0 {
			return nil
		}
		if err := t.Objects.Remove(ctx, doomed); err != nil {
			return err
		}
		removed += len(doomed)
		doomed = nil
		return nil
	}
	err = t.Objects.List(ctx, RunPrefix(r.Period, r.Version), func(key string, _ int64) error {
		if kept[key] {
			return nil
		}
		if doomed = append(doomed, key); len(doomed) < removeAtOnce {
			return nil
		}
		return remove()
	})
	if err != nil {
		return removed, err
	}
	return removed, remove()
}
