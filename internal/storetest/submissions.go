package storetest

import (
	"bytes"
	"compress/flate"
	"context"
	"time"

	"almanac/internal/channel"
	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/store"
)

const (
	someone     = "pat@example.com"
	someoneHash = "5f1c0ffee"
)

func (p place) subKey() schema.Key { return schema.SubmissionKey(p.run(), channel.Email, someoneHash) }

// subRow is a valid submission in a state, worker-1's.
func subRow(p place, state string) row {
	r := row{schema.State: state, schema.Recipient: someone, schema.Owner: "worker-1", schema.BodyHash: "b0d1", schema.Token: "link-1", schema.Tries: 1,
		schema.Frozen: []byte(`{"d":"2026-11-30T07:00:00.000Z","b":"boundary-1"}`), schema.UpdatedAt: wall.Add(-1000000), schema.ExpiresAt: expires.Unix()}
	if state == "submitted" {
		r[schema.ProviderID] = "provider-0"
	}
	return r
}

// deflated is a webhook's body as a row holds it (RFC 1951).
func deflated(body []byte, level int) []byte {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, level)
	if err != nil {
		panic(err) // a level of this package
	}
	if _, err = w.Write(body); err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err) // a buffer takes everything
	}
	return b.Bytes()
}

func newSubmission(p place) schedule.Submission {
	return schedule.Submission{Run: p.run(), Channel: channel.Email, RecipientHash: someoneHash, Recipient: someone, UpdatedAt: wall}
}

// submissions is table B.
func submissions(b *bench) subject {
	s := subjectOf(schedule.Submissions)
	s.key = place.subKey
	s.given = func(p place, state string) world { return world{}.add(p.subKey(), subRow(p, state)) }
	s.blank = func(p place) seen { return seen{sub: newSubmission(p)} }
	s.look = func(ctx context.Context, st *store.Store, p place) (seen, error) {
		sub, err := st.Submission(ctx, p.run(), channel.Email, someoneHash)
		return seen{sub: sub}, err
	}
	s.ways = append(append(intendWays(), answerWays()...), lossWays()...)
	s.ways = append(s.ways, byPerson(b)...)
	return s
}

func given(state string, changes row) func(place) world {
	return func(p place) world { return world{}.add(p.subKey(), subRow(p, state).with(changes)) }
}

func onSub(set row) func(place) []change {
	return func(p place) []change { return []change{{key: p.subKey(), set: set.lay(row{schema.UpdatedAt: wall})}} }
}

// with does an operation with the submission as read, at wall, after a change that the caller makes to it.
func with(change func(*schedule.Submission), do func(context.Context, *store.Store, schedule.Submission) error) func(context.Context, *store.Store, place, seen) error {
	return func(ctx context.Context, s *store.Store, _ place, r seen) error {
		sub := r.sub
		sub.UpdatedAt = wall
		if change != nil {
			change(&sub)
		}
		return do(ctx, s, sub)
	}
}

func intendWays() []way {
	frozen := channel.Frozen{Date: wall, Boundary: "boundary-2", Attach: true, BodyHash: "b0d2"}
	intend := func(f channel.Frozen) func(context.Context, *store.Store, place, seen) error {
		return with(func(s *schedule.Submission) { s.Owner, s.Token, s.Frozen = "worker-2", "link-2", f },
			func(ctx context.Context, s *store.Store, sub schedule.Submission) error {
				return s.Intend(ctx, sub, expires.Unix())
			})
	}
	want := row{schema.State: "pending", schema.Recipient: someone, schema.Owner: "worker-2", schema.Token: "link-2", schema.Tries: 1, schema.BodyHash: "b0d2",
		schema.ExpiresAt: expires.Unix(), schema.Frozen: []byte(`{"d":"2026-11-30T08:00:00.000Z","b":"boundary-2","a":true}`)}
	unwanted := with(func(s *schedule.Submission) { s.Owner, s.Token, s.NotAccepted = "worker-2", "link-2", true },
		func(ctx context.Context, s *store.Store, sub schedule.Submission) error {
			return s.Intend(ctx, sub, expires.Unix())
		})
	return []way{
		{event: "intend", token: true, do: intend(frozen), want: onSub(want)},
		{event: "intend", name: "of one who is not to be asked", token: true, do: unwanted,
			want: onSub(row{schema.State: "pending", schema.Recipient: someone, schema.Owner: "worker-2", schema.Token: "link-2", schema.Tries: 0,
				schema.NotAccepted: true, schema.ExpiresAt: expires.Unix()})},
		{event: "intend", name: "a webhook's whole body", token: true, do: intend(channel.Frozen{Date: wall, Body: []byte(`{"file":"x"}`), BodyHash: "b0d2"}),
			want: onSub(want.lay(row{schema.Frozen: []byte(`{"d":"2026-11-30T08:00:00.000Z"}`), schema.Body: deflated([]byte(`{"file":"x"}`), flate.BestCompression)}))},
	}
}

func answerWays() []way {
	accepted := with(nil, func(ctx context.Context, s *store.Store, sub schedule.Submission) error {
		return s.Accepted(ctx, sub, "provider-1")
	})
	stamped := row{schema.NotAccepted: nil, schema.Reason: nil, schema.Detail: nil}
	return []way{
		{from: "pending", event: "accept", token: true, do: accepted, done: []string{"submitted"}, falls: []string{"unknown"}, given: given("pending", nil),
			want: onSub(stamped.lay(row{schema.State: "submitted", schema.ProviderID: "provider-1"}))},
		{from: "unknown", event: "accept late", token: true, do: accepted, done: []string{"submitted"}, falls: []string{"pending"},
			given: given("unknown", row{schema.Detail: "no answer"}), want: onSub(stamped.lay(row{schema.State: "submitted", schema.ProviderID: "provider-1"}))},
		{from: "pending", event: "refuse", token: true, done: []string{"skipped"}, given: given("pending", nil),
			do: with(func(s *schedule.Submission) { s.Reason, s.Detail = "refused", "550 no such user" },
				func(ctx context.Context, s *store.Store, sub schedule.Submission) error { return s.Refused(ctx, sub) }),
			want: onSub(row{schema.State: "skipped", schema.Reason: "refused", schema.Detail: "550 no such user", schema.NotAccepted: nil})},
		{from: "pending", event: "note not accepted", token: true, given: given("pending", nil),
			do: with(func(s *schedule.Submission) { s.Detail = "454 throttled" },
				func(ctx context.Context, s *store.Store, sub schedule.Submission) error {
					return s.NotAccepted(ctx, sub)
				}),
			want: onSub(row{schema.NotAccepted: true, schema.Detail: "454 throttled"})},
		{from: "pending", event: "note not accepted", name: "until a time", token: true, given: given("pending", nil),
			do: with(func(s *schedule.Submission) { s.Detail, s.RetryAt = "429", wall.Add(time.Minute) },
				func(ctx context.Context, s *store.Store, sub schedule.Submission) error {
					return s.NotAccepted(ctx, sub)
				}),
			want: onSub(row{schema.NotAccepted: true, schema.RetryAt: wall.Add(time.Minute), schema.Detail: "429"})},
		{from: "pending", event: "abandon", token: true, done: []string{"not_sent"}, given: given("pending", row{schema.NotAccepted: true}), do: abandon,
			want: onSub(row{schema.State: "not_sent", schema.Reason: "query_failed"})},
		{event: "abandon", token: true, done: []string{"not_sent"}, do: abandon,
			want: onSub(row{schema.State: "not_sent", schema.Recipient: someone, schema.Owner: "worker-2", schema.Reason: "query_failed", schema.ExpiresAt: expires.Unix()})},
	}
}

func abandon(ctx context.Context, s *store.Store, _ place, r seen) error {
	sub := r.sub
	sub.UpdatedAt, sub.Reason = wall, "query_failed"
	return s.Abandon(ctx, sub, "worker-2", expires.Unix())
}

func lossWays() []way {
	take := func(t schedule.Take) func(context.Context, *store.Store, place, seen) error {
		return with(nil, func(ctx context.Context, s *store.Store, sub schedule.Submission) error {
			return s.TakeOver(ctx, sub, t)
		})
	}
	takeOver := func(owner string, keys bool) func(context.Context, *store.Store, place, seen) error {
		return take(schedule.Take{Owner: owner, HonoursKeys: keys})
	}
	lose := func(owner string, keys, about bool) func(context.Context, *store.Store, place, seen) error {
		return with(func(s *schedule.Submission) { s.Detail = "no answer" },
			func(ctx context.Context, s *store.Store, sub schedule.Submission) error {
				return s.LoseTrack(ctx, sub, owner, keys, about)
			})
	}
	taken := func(owner string) func(place) []change {
		return onSub(row{schema.Owner: owner, schema.NotAccepted: nil, schema.RetryAt: nil, schema.Tries: 2})
	}
	marked := given("pending", row{schema.NotAccepted: true, schema.Detail: "454 throttled", schema.RetryAt: wall.Add(-time.Second)})
	unasked := given("pending", row{schema.NotAccepted: true, schema.Tries: 0, schema.BodyHash: nil, schema.Frozen: nil})
	mail := channel.Frozen{Date: wall, Boundary: "boundary-2", Attach: true, BodyHash: "b0d2"}
	post := channel.Frozen{Date: wall, Body: []byte(`{"file":"x"}`), BodyHash: "b0d2"}
	askedNow := row{schema.Owner: "worker-2", schema.NotAccepted: nil, schema.Tries: 1, schema.BodyHash: "b0d2"}
	lost := onSub(row{schema.State: "unknown", schema.Detail: "no answer"})
	alone := given("pending", nil)
	// What was read as an earlier owner's and is this worker's own by now, is not as read either.
	meanwhileOwn := []breakage{{schedule.EarlierEnded, place.subKey, row{schema.Owner: "worker-2"}}}
	return []way{
		{from: "pending", event: "take over", name: "marked", token: true, given: marked, do: takeOver("worker-2", false), want: taken("worker-2")},
		{from: "pending", event: "take over", name: "marked by this worker too", token: true, given: marked, do: takeOver("worker-1", true), want: taken("worker-1")},
		{from: "pending", event: "take over", name: "the mark stays", token: true, given: marked, do: take(schedule.Take{Owner: "worker-2", KeepMark: true}), want: onSub(row{schema.Owner: "worker-2"})},
		{from: "pending", event: "take over", name: "the mark stays, nothing was frozen", token: true, given: unasked, do: take(schedule.Take{Owner: "worker-2", KeepMark: true}), want: onSub(row{schema.Owner: "worker-2"})},
		{from: "pending", event: "take over", name: "to be asked after all", token: true, given: unasked, do: take(schedule.Take{Owner: "worker-2", Frozen: &mail}),
			want: onSub(askedNow.lay(row{schema.Frozen: []byte(`{"d":"2026-11-30T08:00:00.000Z","b":"boundary-2","a":true}`)}))},
		{from: "pending", event: "take over", name: "to be asked after all, with a whole body", token: true, given: unasked, do: take(schedule.Take{Owner: "worker-2", Frozen: &post}),
			want: onSub(askedNow.lay(row{schema.Frozen: []byte(`{"d":"2026-11-30T08:00:00.000Z"}`), schema.Body: deflated([]byte(`{"file":"x"}`), flate.BestCompression)}))},
		{from: "pending", event: "take over", alternative: 1, name: "the channel honours keys", token: true, given: alone, do: takeOver("worker-2", true), want: taken("worker-2"), also: meanwhileOwn},
		{from: "pending", event: "lose track", name: "e-mail, own reply lost", token: true, done: []string{"unknown"}, given: alone, do: lose("worker-1", false, false), want: lost},
		{from: "pending", event: "lose track", alternative: 1, name: "e-mail, earlier owner gone", token: true, done: []string{"unknown"}, given: alone, do: lose("worker-2", false, false), want: lost, also: meanwhileOwn},
		{from: "pending", event: "lose track", alternative: 2, name: "keys, own reply lost, run about to fail", token: true, done: []string{"unknown"}, given: alone, do: lose("worker-1", true, true), want: lost},
		{from: "pending", event: "lose track", alternative: 3, name: "keys, earlier owner gone, run about to fail", token: true, done: []string{"unknown"}, given: alone, do: lose("worker-2", true, true), want: lost, also: meanwhileOwn},
	}
}

// byPerson are what people do about an unknown, each with its audit.
func byPerson(b *bench) []way {
	wished := row{schema.Detail: "no answer", schema.ResendWish: "wish-1", schema.ResendBy: "ann@example.com", schema.ResendWhy: "holidays"}
	resend := func(change func(*schedule.Submission)) func(context.Context, *store.Store, place, seen) error {
		return func(ctx context.Context, s *store.Store, _ place, r seen) error {
			taken := r.sub
			taken.Owner, taken.OwnerUntil, taken.Resends, taken.UpdatedAt = "worker-2", wall.Add(time.Minute), r.sub.Resends+1, wall
			change(&taken)
			return s.Resend(ctx, r.sub, taken)
		}
	}
	again := row{schema.State: "pending", schema.Owner: "worker-2", schema.OwnerUntil: wall.Add(time.Minute), schema.Resends: 1, schema.Detail: nil,
		schema.ResendWish: nil, schema.ResendBy: nil, schema.ResendWhy: nil}
	ways := []way{
		{from: "unknown", event: string(schedule.Resend), token: true, given: given("unknown", wished),
			do: resend(func(s *schedule.Submission) {
				s.Tries, s.Frozen = s.Tries+1, channel.Frozen{Date: wall, Boundary: "boundary-2", BodyHash: "b0d2"}
			}),
			want: onSub(again.lay(row{schema.Tries: 2, schema.BodyHash: "b0d2", schema.Frozen: []byte(`{"d":"2026-11-30T08:00:00.000Z","b":"boundary-2"}`)}))},
		{from: "unknown", event: string(schedule.Resend), name: "of one who is not to be asked", token: true, given: given("unknown", wished),
			do: resend(func(*schedule.Submission) {}), want: onSub(again)},
	}
	for event, becomes := range map[schedule.SubmissionEvent]row{
		schedule.ResolveSubmitted: {schema.State: "submitted", schema.Reason: nil},
		schedule.ResolveSkipped:   {schema.State: "skipped", schema.Reason: "resolved"},
	} {
		ways = append(ways, way{from: "unknown", event: string(event), token: true, given: given("unknown", row{schema.Detail: "no answer", schema.Reason: "left over"}),
			do: func(ctx context.Context, s *store.Store, p place, r seen) error {
				return s.Resolve(ctx, r.sub, event, onResolve(p))
			},
			want: func(p place) []change {
				return []change{auditRow(onResolve(p)), {key: p.subKey(), set: becomes.lay(row{schema.UpdatedAt: actAt, schema.Detail: "resolved by ann@example.com: holidays"})}}
			}})
	}
	return ways
}

func onResolve(p place) schedule.Audit { return actOf(p.run(), "act-1", "resolve") }
