package store

import (
	"context"
	"strings"

	"almanac/internal/channel"
	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/transition"

	"github.com/aws/aws-sdk-go-v2/aws"
)

func subKey(s schedule.Submission) schema.Key {
	return schema.SubmissionKey(s.Run, s.Channel, s.RecipientHash)
}

// splitSub takes the sort key of a submission apart.
func splitSub(sk schema.Sort) (channelName, hash string) {
	channelName, hash, _ = strings.Cut(strings.TrimPrefix(string(sk), schema.SubPrefix), "#")
	return channelName, hash
}

type subStep = step[schedule.SubmissionState, schedule.SubmissionEvent]

func (s *Store) submission(ctx context.Context, st subStep) error {
	st.table = schedule.Submissions
	w, err := advance(st)
	if err != nil {
		return &schedule.Conflict{Event: string(st.event), Why: err.Error()}
	}
	return s.send(ctx, w)
}

// Intend records that a request is about to be sent, with what its body is rendered from. One put per recipient; never
// BatchWriteItem, which carries no condition.
func (s *Store) Intend(ctx context.Context, sub schedule.Submission, expires int64) error {
	put := compact(map[string]any{
		schema.Recipient: sub.Recipient, schema.Owner: sub.Owner,
		schema.NotAccepted: sub.NotAccepted, schema.Token: sub.Token, schema.Tries: tries(sub), schema.UpdatedAt: sub.UpdatedAt, schema.ExpiresAt: expires,
	})
	for k, v := range frozenAttributes(sub.Frozen) {
		put[k] = attr(v)
	}
	return s.submission(ctx, subStep{from: transition.Absent, event: schedule.Intend, key: subKey(sub), put: put,
		facts: facts{decided: []transition.Guard{schedule.LeaseByClock, schedule.TimeReserve}},
		mine:  ownedBy(sub.Owner)})
}

// tries is how often a submission that is just intended will have been sent: a recipient that is not asked at all bears
// the mark from the start.
func tries(sub schedule.Submission) int {
	if sub.NotAccepted {
		return 0
	}
	return 1
}

func ownedBy(token string) func(item) bool {
	return func(it item) bool { return str(it, schema.Owner) == token }
}

// Accepted records the receiver's acceptance. An answer that comes after track was lost is recorded too, as long as the
// submission is still this owner's.
func (s *Store) Accepted(ctx context.Context, sub schedule.Submission, providerID string) error {
	set := map[string]any{schema.ProviderID: providerID, schema.UpdatedAt: schema.Time(sub.UpdatedAt), schema.NotAccepted: nil, schema.Reason: nil, schema.Detail: nil}
	in := func(from schedule.SubmissionState, event schedule.SubmissionEvent) error {
		return s.submission(ctx, subStep{from: from, event: event, key: subKey(sub), facts: facts{owner: sub.Owner}, with: update{set: set},
			mine: outcome(sub.Owner, schedule.Submitted)})
	}
	err := in(schedule.Pending, schedule.Accept)
	if c, ok := err.(*schedule.Conflict); ok && c.Submission != nil && c.Submission.State == schedule.Unknown {
		return in(schedule.Unknown, schedule.AcceptLate)
	}
	return err
}

// outcome recognises a settled submission that this owner settled.
func outcome(owner string, state schedule.SubmissionState) func(item) bool {
	return func(it item) bool { return str(it, schema.Owner) == owner && str(it, schema.State) == string(state) }
}

// Refused records a verdict on the recipient.
func (s *Store) Refused(ctx context.Context, sub schedule.Submission) error {
	return s.submission(ctx, subStep{from: schedule.Pending, event: schedule.Refuse, key: subKey(sub),
		facts: facts{owner: sub.Owner, decided: []transition.Guard{schedule.VerdictKnown}},
		with:  update{set: map[string]any{schema.Reason: sub.Reason, schema.Detail: sub.Detail, schema.UpdatedAt: schema.Time(sub.UpdatedAt), schema.NotAccepted: nil, schema.RetryAt: nil}},
		mine:  outcome(sub.Owner, schedule.NotDelivered)})
}

// NotAccepted marks that certainly nothing was accepted: no send while the mark stands, and a take-over lifts it.
func (s *Store) NotAccepted(ctx context.Context, sub schedule.Submission) error {
	return s.submission(ctx, subStep{from: schedule.Pending, event: schedule.NoteNotAccepted, key: subKey(sub),
		facts: facts{owner: sub.Owner, decided: []transition.Guard{schedule.NothingTaken}},
		with:  update{set: map[string]any{schema.NotAccepted: true, schema.RetryAt: schema.Time(sub.RetryAt), schema.Detail: sub.Detail, schema.UpdatedAt: schema.Time(sub.UpdatedAt)}},
		mine:  func(it item) bool { return str(it, schema.Owner) == sub.Owner && flag(it, schema.NotAccepted) }})
}

// TakeOver makes a pending submission this worker's, before it sends again or refuses. The submission is as read.
func (s *Store) TakeOver(ctx context.Context, sub schedule.Submission, t schedule.Take) error {
	f := facts{earlier: sub.Owner, decided: []transition.Guard{schedule.RunLeaseHeld}}
	if t.HonoursKeys && sub.Owner != t.Owner {
		f.decided = append(f.decided, schedule.HonoursKeys)
	}
	u := update{set: map[string]any{schema.Owner: t.Owner, schema.UpdatedAt: schema.Time(sub.UpdatedAt)}}
	if !t.KeepMark {
		u.set[schema.NotAccepted], u.set[schema.RetryAt] = nil, nil
		u.add = map[string]int{schema.Tries: 1}
	}
	if t.Frozen != nil {
		for k, v := range frozenAttributes(*t.Frozen) {
			u.set[k] = v
		}
	}
	return s.submission(ctx, subStep{from: sub.State, event: schedule.TakeOver, key: subKey(sub), facts: f, with: u,
		// A worker may take over what it marked itself: then the try that was counted tells its write from its read.
		mine: func(it item) bool {
			return str(it, schema.Owner) == t.Owner && flag(it, schema.NotAccepted) == t.KeepMark && num(it, schema.Tries) == sub.Tries+u.add[schema.Tries]
		}})
}

// frozenAttributes spell what a body is rendered from; nothing where nothing was rendered.
func frozenAttributes(f channel.Frozen) map[string]any {
	if f.BodyHash == "" {
		return nil
	}
	attrs := map[string]any{schema.BodyHash: f.BodyHash, schema.Frozen: encodeFrozen(f)}
	if len(f.Body) > 0 {
		attrs[schema.Body] = deflate(f.Body)
	}
	return attrs
}

// LoseTrack records that nobody knows whether the request was accepted. about says that the run is about to fail,
// honoursKeys what the channel does; the submission is as read, owner is the worker that writes.
func (s *Store) LoseTrack(ctx context.Context, sub schedule.Submission, owner string, honoursKeys, about bool) error {
	f := facts{owner: owner, earlier: sub.Owner}
	if honoursKeys {
		f.decided = append(f.decided, schedule.HonoursKeys)
	} else {
		f.decided = append(f.decided, schedule.EmailChannel)
	}
	if about {
		f.decided = append(f.decided, schedule.RunAboutToFail)
	}
	if sub.Owner == owner {
		f.decided = append(f.decided, schedule.ReplyLost)
	}
	return s.submission(ctx, subStep{from: sub.State, event: schedule.LoseTrack, key: subKey(sub), facts: f,
		with: update{set: map[string]any{schema.Detail: sub.Detail, schema.UpdatedAt: schema.Time(sub.UpdatedAt)}},
		mine: func(it item) bool {
			return str(it, schema.State) == string(schedule.Unknown) && str(it, schema.Owner) == sub.Owner
		}})
}

// Abandon records that this recipient was not asked, or certainly not accepted, by a run that is about to fail.
func (s *Store) Abandon(ctx context.Context, sub schedule.Submission, owner string, expires int64) error {
	return s.submission(ctx, subStep{from: sub.State, event: schedule.Abandon, key: subKey(sub),
		facts: facts{decided: []transition.Guard{schedule.RunAboutToFail, schedule.RunHasFile}},
		put:   compact(map[string]any{schema.Recipient: sub.Recipient, schema.Owner: owner, schema.Reason: sub.Reason, schema.UpdatedAt: sub.UpdatedAt, schema.ExpiresAt: expires}),
		with:  update{set: map[string]any{schema.Reason: sub.Reason, schema.RetryAt: nil, schema.UpdatedAt: schema.Time(sub.UpdatedAt)}},
		mine:  func(it item) bool { return str(it, schema.State) == string(schedule.NotSent) }})
}

// listed are the attributes of a submission that lists show: all but what its body is rendered from, which is most of it.
var listed = []string{schema.PK, schema.SK, schema.State, schema.Recipient, schema.Owner, schema.OwnerUntil, schema.Resends, schema.ResendWish,
	schema.ResendBy, schema.ResendWhy, schema.NotAccepted, schema.Tries, schema.Token, schema.ProviderID, schema.Reason, schema.Detail,
	schema.RevokedAt, schema.UpdatedAt, schema.RetryAt, schema.Bounce, schema.Complaint, schema.Rejection, schema.BounceAgain, schema.ComplaintAgain, schema.RejectionAgain}

// submissions is a consistent read of a run's submissions, without their bodies.
func submissions(run string) span {
	sp := below(schema.SubmissionPartition(run), schema.SubPrefix, false)
	e := expression{names: sp.in.ExpressionAttributeNames}
	names := make([]string, len(listed))
	for i, n := range listed {
		names[i] = e.name(n)
	}
	sp.in.ProjectionExpression = aws.String(strings.Join(names, ", "))
	return sp
}

// Submissions lists the submissions of a run, consistently, without what their bodies are rendered from.
func (s *Store) Submissions(ctx context.Context, run string) ([]schedule.Submission, error) {
	var subs []schedule.Submission
	err := s.EachSubmission(ctx, run, func(sub schedule.Submission) { subs = append(subs, sub) })
	if err != nil {
		return nil, err
	}
	return subs, nil
}

// EachSubmission hands over the submissions of a run one by one, as Submissions lists them, so that a caller need not hold
// them all: ten thousand take some 10 MB.
func (s *Store) EachSubmission(ctx context.Context, run string, each func(schedule.Submission)) error {
	sp := submissions(run)
	var from item
	for {
		p, err := s.query(ctx, sp, from, 0)
		if err != nil {
			return err
		}
		for _, it := range p.items {
			sub, err := decodeSubmission(it)
			if err != nil {
				return err
			}
			each(sub)
		}
		if from = p.next; len(from) == 0 {
			return nil
		}
	}
}

// SubmissionPage lists a page of a run's submissions, of one state where state is not empty. A page may be short of limit
// only at the end.
func (s *Store) SubmissionPage(ctx context.Context, run string, state schedule.SubmissionState, from string, limit int) ([]schedule.Submission, string, error) {
	sp := submissions(run)
	at, err := sp.parse(from)
	if err != nil {
		return nil, "", err
	}
	var subs []schedule.Submission
	// Which rows are of the state is seen here. Where they are rare, more are read at once: a megabyte holds some thousands.
	for size := limit; ; size = min(4*size, 4096) {
		p, err := s.query(ctx, sp, at, size)
		if err != nil {
			return nil, "", err
		}
		for i, it := range p.items {
			if state != "" && str(it, schema.State) != string(state) {
				continue
			}
			sub, err := decodeSubmission(it)
			if err != nil {
				return nil, "", err
			}
			subs = append(subs, sub)
			if more := i+1 < len(p.items) || len(p.next) > 0; len(subs) == limit {
				if !more {
					return subs, "", nil
				}
				return subs, cursor(keyItem(keyOf(it))), nil
			}
		}
		if at = p.next; len(at) == 0 {
			return subs, "", nil
		}
	}
}

// Submission reads one submission consistently.
func (s *Store) Submission(ctx context.Context, run, channelName, recipientHash string) (schedule.Submission, error) {
	it, err := s.get(ctx, schema.SubmissionKey(run, channelName, recipientHash))
	if err != nil {
		return schedule.Submission{}, err
	}
	return decodeSubmission(it)
}

// BeforeRecipient reads, in one consistent batch, all that must be looked at before one recipient is asked.
func (s *Store) BeforeRecipient(ctx context.Context, r schedule.Run, channelName, recipientHash string) (schedule.Look, error) {
	runK, ctlK := runKey(r), schema.ControlKey(s.Stage)
	subK := schema.SubmissionKey(r.ID(), channelName, recipientHash)
	supK := schema.SuppressionKey(channelName, recipientHash)
	unsK := schema.UnsubscriptionKey(channelName, recipientHash, r.Schedule)
	rows, err := s.batch(ctx, []schema.Key{runK, ctlK, subK, supK, unsK})
	if err != nil {
		return schedule.Look{}, err
	}
	look := schedule.Look{Control: decodeControl(rows[ctlK]), Suppressed: suppresses(rows[supK]), Unsubscribed: len(rows[unsK]) > 0}
	if look.Run, err = decodeRun(rows[runK]); err != nil {
		return look, err
	}
	if it := rows[subK]; len(it) > 0 {
		sub, err := decodeSubmission(it)
		if err != nil {
			return look, err
		}
		look.Submission = &sub
	}
	return look, nil
}
