package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"almanac/internal/channel"
	"almanac/internal/input"
)

// RetryLedger is what retry as new asks of the store, besides the admission.
type RetryLedger interface {
	Run(ctx context.Context, id string) (Run, error)
	Submissions(ctx context.Context, run string) ([]Submission, error)
	TargetReader
}

// Whom a retry as new sends to.
const (
	RetryMissing  = "missing"  // who got nothing for certain, and those unknowns that a person names
	RetryEveryone = "everyone" // everybody, also who has it already
)

// MaxNamed bounds the unknowns that one retry names: each is a decision of a person, and a preview's query holds them, of
// some 50 bytes each. An HTTP API takes 10,240 bytes of request line and headers, in which a token stands too:
// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html.
const MaxNamed = 100

// RetryRequest is what a person asks for.
type RetryRequest struct {
	To             string   // RetryMissing or RetryEveryone; empty: RetryMissing
	IncludeUnknown []string // hashes of recipients of whom nobody knows, sent to nevertheless; with RetryMissing only
}

// RetryPlan is whom a retry sends to, and why not the others.
type RetryPlan struct {
	Of    Run // the run that it repeats
	To    string
	Send  []RetryTarget
	Leave []RetryTarget
	def   Version
}

// RetryTarget is one recipient of a plan.
type RetryTarget struct {
	Target
	State SubmissionState // in the run that is repeated; empty: it was not asked
	Why   string
}

// PlanRetry says whom a retry as new of a settled run would send to; it changes nothing. A run whose recorded file must
// not be sent any more is a Conflict that says why.
func (e *Editor) PlanRetry(ctx context.Context, id string, q RetryRequest) (RetryPlan, error) {
	p := RetryPlan{To: q.To}
	if p.To == "" {
		p.To = RetryMissing
	}
	if ps := q.check(); len(ps) > 0 {
		return p, ps
	}
	var err error
	if p.Of, err = e.Ledger.Run(ctx, id); err != nil {
		return p, err
	}
	if err := e.repeatable(ctx, p.Of); err != nil {
		return p, err
	}
	if p.def, err = e.Ledger.Definition(ctx, p.Of.Schedule, p.Of.Version); err != nil {
		return p, err
	}
	list, err := e.Ledger.Submissions(ctx, id)
	if err != nil {
		return p, err
	}
	targets, err := RecipientsOf(ctx, e.Ledger, p.Of, p.def)
	if err != nil {
		return p, err
	}
	return p, p.choose(targets, list, q.IncludeUnknown)
}

func (q RetryRequest) check() Problems {
	var ps Problems
	switch {
	case q.To != "" && q.To != RetryMissing && q.To != RetryEveryone:
		ps = append(ps, input.Wrong("to", orMissing(q.To), `"missing" or "everyone"`))
	case q.To == RetryEveryone && len(q.IncludeUnknown) > 0:
		ps = append(ps, input.Wrong("include_unknown", fmt.Sprintf("%d recipients", len(q.IncludeUnknown)), `none beside to "everyone", which sends to each unknown as well`))
	case len(q.IncludeUnknown) > MaxNamed:
		return append(ps, input.Wrong("include_unknown", fmt.Sprintf("%d recipients", len(q.IncludeUnknown)), fmt.Sprintf("at most %d", MaxNamed)))
	}
	for i, hash := range q.IncludeUnknown {
		if !hashForm.MatchString(hash) {
			ps = append(ps, input.Wrong(fmt.Sprintf("include_unknown[%d]", i), orMissing(hash), "the hash of a recipient who is unknown, as GET /runs/{run} shows it"))
		}
	}
	return ps
}

// repeatable says why a run cannot be repeated with its recorded file.
func (e *Editor) repeatable(ctx context.Context, r Run) error {
	no := func(format string, args ...any) error {
		return &Conflict{Event: "retry as new", Why: fmt.Sprintf(format, args...), Run: &r}
	}
	switch now := e.Clocks.Wall(); {
	case r.State != Failed && r.State != Succeeded:
		return no("the run is %s; only one that has failed or succeeded can be repeated", r.State)
	case r.File != nil && !now.Before(r.FileExpires):
		return no("its file expired at %s; run the schedule now for a new one", r.FileExpires.UTC().Format(time.RFC3339))
	case r.File != nil && !r.LinksRevoked.IsZero():
		return no("the links to its file were taken back at %s; run the schedule now for a new one", r.LinksRevoked.UTC().Format(time.RFC3339))
	}
	s, err := e.Ledger.Schedule(ctx, r.Schedule)
	if errors.Is(err, ErrNotFound) || err == nil && s.State == Deleted {
		return no("schedule %s is deleted", r.Schedule)
	}
	return err
}

// choose divides the recipients of the run that is repeated.
func (p *RetryPlan) choose(targets []Target, list []Submission, unknown []string) error {
	subs := map[string]Submission{}
	for _, s := range list {
		subs[s.Channel+"#"+s.RecipientHash] = s
	}
	named := map[string]bool{}
	for _, t := range targets {
		s := subs[t.key()]
		listed := slices.Contains(unknown, t.Hash)
		if listed && s.State != Unknown {
			return &Conflict{Event: "retry as new", Why: fmt.Sprintf("include_unknown names %s, who is not unknown (any more): %s", t.Hash, orNotAsked(s.State)), Submission: submissionOf(s)}
		}
		named[t.Hash] = true
		send, why := p.wants(s, listed)
		if one := (RetryTarget{t, s.State, why}); send {
			p.Send = append(p.Send, one)
		} else {
			p.Leave = append(p.Leave, one)
		}
	}
	for i, hash := range unknown {
		if !named[hash] {
			return Problems{input.Wrong(fmt.Sprintf("include_unknown[%d]", i), orMissing(hash), "the hash of a recipient of this run who is unknown")}
		}
	}
	return nil
}

func submissionOf(s Submission) *Submission {
	if s.State == "" {
		return nil
	}
	return &s
}

func orNotAsked(s SubmissionState) string {
	if s == "" {
		return "not asked"
	}
	return string(s)
}

// wants decides about one recipient.
func (p *RetryPlan) wants(s Submission, listed bool) (send bool, why string) {
	switch {
	case s.State == Pending:
		return false, "a request to it is under way"
	case p.To == RetryEveryone:
		return true, "everyone was asked for"
	case s.State == "" || s.State == NotSent:
		return true, "was not asked"
	case s.State == NotDelivered && s.Reason == channel.ReasonRefused:
		return true, "its receiver refused"
	case s.State == Unknown && listed:
		return true, "unknown, and named nevertheless: it may get the delivery twice"
	case s.State == Unknown:
		return false, "unknown: it may have the delivery; sent to only if named"
	case s.State == Submitted:
		return false, "has the delivery"
	}
	return false, "skipped as " + s.Reason
}

// Retry admits a manual run that sends the recorded file of a settled run to those whom PlanRetry names; where no file is
// recorded the new run makes one. Whom it sends to is frozen with its admission. The caller's idempotency key makes it
// once, as with RunNow.
func (e *Editor) Retry(ctx context.Context, id string, q RetryRequest, reason, principal, key, requestHash string) (Run, bool, error) {
	if ps := needReason(reason); ps != nil {
		return Run{}, false, ps
	}
	old, err := e.Ledger.Run(ctx, id)
	if err != nil {
		return Run{}, false, err
	}
	twin := Run{Schedule: old.Schedule, Occurrence: ManualKey(principal, key)}
	if before, err := e.Ledger.Run(ctx, twin.ID()); !errors.Is(err, ErrNotFound) {
		return madeBefore("retry as new", before, err, requestHash) // whatever became of the old run since
	}
	p, err := e.PlanRetry(ctx, id, q)
	switch {
	case err != nil:
		return Run{}, false, err
	case len(p.Send) == 0:
		return Run{}, false, &Conflict{Event: "retry as new", Why: "nobody is left to send to; the preview says why", Run: &p.Of}
	}
	now, err := e.Clocks.Business(ctx)
	if err != nil {
		return Run{}, false, err
	}
	r := p.run(now, e.Clocks.Wall(), e.Timing)
	r.Occurrence, r.RequestedBy, r.RequestHash = twin.Occurrence, principal, requestHash
	a := e.audit(r.ID(), principal, "retry as new", reason, id, fmt.Sprintf("%d recipients, %s", len(p.Send), p.To))
	err = e.Ledger.Admit(ctx, Admission{Run: r, Token: e.Token(), TTL: e.Clocks.Wall().Add(e.Timing.RunRetention.Std()), Audit: &a})
	var c *Conflict
	if errors.As(err, &c) && c.Run != nil {
		return madeBefore("retry as new", *c.Run, nil, requestHash)
	}
	if err != nil {
		return r, false, err
	}
	Offer(ctx, e.Queue, []string{r.ID()}, e.Log)
	return r, true, nil
}

// madeBefore answers a request whose key had made a run.
func madeBefore(act string, r Run, err error, requestHash string) (Run, bool, error) {
	if err == nil && r.RequestHash != requestHash {
		err = &Conflict{Event: act, Why: "key reused: this Idempotency-Key was used for another request", Run: &r}
	}
	return r, false, err
}

// run is the new run of a plan: its links live as long as fresh ones would, and never longer than the file.
func (p RetryPlan) run(now, wall time.Time, t Timing) Run {
	r := NewRun(p.def, now, wall, t)
	r.Manual, r.RetryOf, r.Groups = true, p.Of.ID(), p.Of.Groups
	for _, x := range p.Send {
		r.Targets = append(r.Targets, x.key())
	}
	if p.Of.File != nil {
		_, links := expiry(p.def, wall)
		if links.After(p.Of.FileExpires) {
			links = p.Of.FileExpires
		}
		r.File, r.FileExpires, r.LinkExpires = p.Of.File, p.Of.FileExpires, links
	}
	return r
}
