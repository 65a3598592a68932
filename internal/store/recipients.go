package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/schema"
)

// Lists keeps the lists that do not fit a row, each under the SHA-256 of its bytes (lower-case hexadecimal).
type Lists interface {
	// PutList keeps b under its hash. Putting it again changes nothing, and mends what was changed behind our back.
	PutList(ctx context.Context, hash string, b []byte) error
	// List reads at most limit bytes of what stands under a hash, and does not check them. One that is not there is
	// file_inconsistent.
	List(ctx context.Context, hash string, limit int) ([]byte, error)
}

// maxList bounds the bytes that are read of one list: 10,000 targets have some 750 KB, recipients what a definition allows.
const maxList = schedule.MaxRecipientsBytes

// freeze keeps a list before the row that will name it is written: a row never names what is not there.
func (s *Store) freeze(ctx context.Context, list any, count int) (schedule.ListRef, error) {
	b, err := json.Marshal(list) // structs and text only: equal lists have equal bytes
	if err != nil {
		return schedule.ListRef{}, fmt.Errorf("list of %d recipients: %w", count, err)
	}
	if s.Lists == nil {
		return schedule.ListRef{}, failure.New(failure.InternalError, "this function keeps no lists of recipients: it has no bucket for them")
	}
	sum := sha256.Sum256(b)
	ref := schedule.ListRef{Hash: hex.EncodeToString(sum[:]), Count: count}
	return ref, s.Lists.PutList(ctx, ref.Hash, b)
}

// thaw reads a list into the slice that into points to, and checks that it is the one that was frozen. One that is
// missing or another is definition_invalid: saving the schedule again keeps it anew.
func thaw[T any](ctx context.Context, s *Store, ref schedule.ListRef) ([]T, error) {
	if s.Lists == nil {
		return nil, failure.New(failure.InternalError, "this function reads no lists of recipients: it has no bucket for them")
	}
	wrong := func(cause error, why string) error {
		return failure.Wrap(failure.DefinitionInvalid, cause, "the list of %d recipients in the object %s %s", ref.Count, schema.ListKey(ref.Hash), why)
	}
	b, err := s.Lists.List(ctx, ref.Hash, maxList+1)
	if failure.Is(err, failure.FileInconsistent) {
		return nil, wrong(err, "is not there any more")
	}
	if err != nil {
		return nil, err
	}
	var list []T
	sum := sha256.Sum256(b)
	if hex.EncodeToString(sum[:]) != ref.Hash {
		return nil, wrong(nil, "was changed: its bytes have another SHA-256")
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, wrong(err, "cannot be read")
	}
	if len(list) != ref.Count {
		return nil, wrong(nil, fmt.Sprintf("has %d entries", len(list)))
	}
	return list, nil
}

// Definition reads one immutable version, whole. Where its recipients stand apart and are not there any more, or are
// others, the error is definition_invalid and the version is its outline.
func (s *Store) Definition(ctx context.Context, id string, version int) (schedule.Version, error) {
	v, err := s.Outline(ctx, id, version)
	if err != nil || v.List.Hash == "" {
		return v, err
	}
	list, err := thaw[schedule.Recipient](ctx, s, v.List)
	v.Recipients = list
	return v, err
}

// Outline reads one immutable version without recipients that stand apart: for whom the rest is enough. It needs no bucket.
func (s *Store) Outline(ctx context.Context, id string, version int) (schedule.Version, error) {
	it, err := s.get(ctx, schema.DefinitionKey(id, version))
	if err != nil {
		return schedule.Version{}, err
	}
	if len(it) == 0 {
		return schedule.Version{}, schedule.ErrNotFound
	}
	v, err := decodeVersion(it)
	if err != nil {
		return v, fmt.Errorf("definition of %s: %w", id, err)
	}
	return v, nil
}

// RunTargets are those that a retry sends to, as channel#hash; any other run has none.
func (s *Store) RunTargets(ctx context.Context, r schedule.Run) ([]string, error) {
	if r.TargetList.Hash == "" {
		return r.Targets, nil
	}
	return thaw[string](ctx, s, r.TargetList)
}
