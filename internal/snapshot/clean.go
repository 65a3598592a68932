package snapshot

import (
	"context"
	"errors"
)

// settledShard counts final failures, and removes what runs left that settled long enough ago.
func (t *reconcileTick) settledShard(ctx context.Context, shard int) {
	wall := t.Clocks.Wall()
	for from := ""; t.timeLeft(ctx); {
		ids, next, err := t.Ledger.Leftovers(ctx, shard, wall, from, t.Timing.PageSize)
		if err != nil {
			t.trouble("settled runs could not be read", err, "shard", shard)
			return
		}
		for _, id := range ids {
			if !t.timeLeft(ctx) {
				return
			}
			if err := t.settledRun(ctx, id); err != nil {
				t.trouble("a settled run could not be cleaned; the next tick tries again", err, "run", id)
			}
		}
		if from = next; from == "" {
			return
		}
	}
}

func (t *reconcileTick) settledRun(ctx context.Context, id string) error {
	r, err := t.Ledger.Run(ctx, id)
	if errors.Is(err, ErrNotFound) || err == nil && !r.Final() {
		return nil // the index was behind
	}
	if err != nil {
		return err
	}
	if r.State == Failed {
		head, err := t.Ledger.Head(ctx, r.Period)
		if err != nil {
			return err
		}
		if head.Latest == r.Version {
			t.FinalFailures++
		}
	}
	if since(t.Clocks.Wall(), r.SettledAt) < t.Timing.CleanAfter.Std() {
		return nil
	}
	removed, err := t.clean(ctx, r)
	if err != nil {
		return err
	}
	t.Cleaned++
	t.Removed += removed
	t.Log.Info("leftovers removed", "run", id, "state", r.State, "objects", removed)
	return t.Ledger.Cleaned(ctx, id)
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
