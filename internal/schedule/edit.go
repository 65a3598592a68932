package schedule

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/failure"
	"almanac/internal/input"
)

// EditLedger is what people's commands ask of the store. Each act and its audit are one transaction.
type EditLedger interface {
	Schedule(ctx context.Context, id string) (Schedule, error)
	Definition(ctx context.Context, id string, version int) (Version, error)
	Outline(ctx context.Context, id string, version int) (Version, error)
	Workspace(ctx context.Context, id string) (Workspace, error)
	Source(ctx context.Context, name string) (SourceConfig, error)
	PutWorkspace(ctx context.Context, w Workspace, a Audit) error
	PutSource(ctx context.Context, c SourceConfig, a Audit) error
	CreateSchedule(ctx context.Context, v Version, s Schedule, skips []Skip, ttl time.Time, a Audit) error
	EditSchedule(ctx context.Context, v Version, s Schedule, next time.Time, skips []Skip, ttl time.Time, a Audit) error
	PauseSchedule(ctx context.Context, s Schedule, a Audit) error
	ResumeSchedule(ctx context.Context, s Schedule, next time.Time, skips []Skip, ttl time.Time, a Audit) error
	DeleteSchedule(ctx context.Context, s Schedule, expires time.Time, a Audit) error
	Admit(ctx context.Context, a Admission) error
	StopLedger
	LinkKeeper
	UnknownLedger
	RetryLedger
	GroupLedger
	ResendLedger
	RedriveLedger
	ControlLedger
	SuppressionLedger
}

// Editor carries out people's commands on schedules. Each reads, decides and writes on the condition of what it read;
// where the row changed meanwhile it reads again.
type Editor struct {
	Ledger EditLedger
	Queue  Queue
	Clocks Clocks
	Timing Timing
	Token  func() string
	Log    *slog.Logger
}

// Change is what applying a definition does, or would do.
type Change struct {
	ID      string
	Action  string // "create", "edit" or "unchanged"
	Version int
	Diff    []string // one line per field that differs
	NextDue []calendar.Entry
	Groups  []GroupHead // of a schedule, as they stand now
}

// previews is how many due times a plan shows.
const previews = 5

// Plan says what Apply would do; it changes nothing.
func (e *Editor) Plan(ctx context.Context, d Definition) (Change, error) {
	c, err := e.compare(ctx, d)
	return c.Change, err
}

// rereads bounds how often a command reads again because the row changed between its read and its write. An occurrence
// is admitted at most once a minute, so that more than a few means a defect.
const rereads = 20

// Apply saves a definition: a new schedule, a new version, or nothing where it is equal. ifVersion, where not 0, is the
// version that the caller has seen; another one is a Conflict.
func (e *Editor) Apply(ctx context.Context, d Definition, by string, ifVersion int) (Change, error) {
	for try := 0; ; try++ {
		c, err := e.compare(ctx, d)
		if err != nil {
			return c.Change, err
		}
		if ifVersion != 0 && c.row.Version != ifVersion {
			return c.Change, &Conflict{Event: "edit", Why: fmt.Sprintf("you have seen version %d, the schedule is at version %d", ifVersion, c.row.Version), Schedule: &c.row}
		}
		if c.Action == "unchanged" {
			return c.Change, nil
		}
		err = e.save(ctx, c, by)
		if IsConflict(err) && ctx.Err() == nil && try < rereads {
			continue // somebody saved, or an occurrence was admitted, between read and write
		}
		return c.Change, err
	}
}

// comparison is a definition beside what stands.
type comparison struct {
	Change
	def Definition // complete: with defaults, and the workspace's zone where it left its own open
	row Schedule   // as read; version 0: there is none
	old Version
}

// compare reads what stands and checks what only the store can tell.
func (e *Editor) compare(ctx context.Context, d Definition) (comparison, error) {
	d = d.withDefaults()
	c := comparison{Change: Change{ID: d.ID, Action: "create", Version: 1}, row: Schedule{ID: d.ID}}
	if ps := d.Check(); len(ps) > 0 {
		return c, ps
	}
	ws, err := e.references(ctx, d)
	if err != nil {
		return c, err
	}
	c.def = d.inZone(ws)
	if c.Groups, err = e.groups(ctx, d); err != nil {
		return c, err
	}
	now, err := e.Clocks.Business(ctx)
	if err != nil {
		return c, err
	}
	rule, err := calendar.Parse(c.def.Recurrence)
	if err != nil {
		return c, err
	}
	c.NextDue = rule.Preview(now, previews)
	row, err := e.Ledger.Schedule(ctx, d.ID)
	if errors.Is(err, ErrNotFound) {
		return c, over(rule, now)
	}
	if err != nil {
		return c, err
	}
	c.row = row
	if row.State == Deleted {
		return c, &Conflict{Event: "edit", Why: "the schedule was deleted; its id is free again once its runs have expired. Choose another id", Schedule: &row}
	}
	c.old, err = e.Ledger.Definition(ctx, d.ID, row.Version)
	lost := failure.Is(err, failure.DefinitionInvalid)
	if err != nil && !lost {
		return c, err
	}
	if c.old.Workspace != d.Workspace {
		return c, Problems{input.Wrong("workspace", fmt.Sprintf("%q", d.Workspace), fmt.Sprintf("%q: a schedule does not move between workspaces; delete it and create another", c.old.Workspace))}
	}
	if !c.old.Recurrence.SameTimes(c.def.Recurrence) {
		if err := over(rule, now); err != nil {
			return c, err
		}
	}
	c.Action, c.Version = "edit", row.Version+1
	if lost { // saving them again is what helps, also where nothing else changes
		c.Diff = []string{fmt.Sprintf("recipients: the list of version %d cannot be read → %d", row.Version, len(c.def.Recipients))}
		c.old.Recipients = c.def.Recipients
	} else if c.old.Hash == c.def.Hash() {
		c.Action, c.Version = "unchanged", row.Version
	}
	c.Diff = append(c.Diff, diff(c.old.Definition, c.def)...)
	return c, nil
}

// over refuses a recurrence whose last occurrence is past: the schedule would stand there and never run.
func over(rule *calendar.Recurrence, now time.Time) error {
	if rule.Next(now).At.IsZero() {
		return Problems{input.Wrong("recurrence", fmt.Sprintf("%q, which has no occurrence after %s", rule.Spec().String(), now.UTC().Format(time.RFC3339)), "a later end, a larger count, or none of them")}
	}
	return nil
}

// references checks the names that a definition refers to.
func (e *Editor) references(ctx context.Context, d Definition) (Workspace, error) {
	ws, err := e.Ledger.Workspace(ctx, d.Workspace)
	if errors.Is(err, ErrNotFound) {
		return ws, Problems{input.Wrong("workspace", fmt.Sprintf("%q", d.Workspace), "a workspace that exists; `almanac get workspaces` lists them")}
	} else if err != nil {
		return ws, err
	}
	src, err := e.Ledger.Source(ctx, d.Source)
	if errors.Is(err, ErrNotFound) || err == nil && !src.Serves(d.Workspace) {
		return ws, Problems{input.Wrong("source", fmt.Sprintf("%q", d.Source), fmt.Sprintf("a source that workspace %s may use; `almanac get sources` lists them", d.Workspace))}
	}
	return ws, err
}

// inZone fills in the workspace's zone where a definition leaves it open.
func (d Definition) inZone(w Workspace) Definition {
	if d.Recurrence.Zone == "" {
		d.Recurrence.Zone = w.Zone
	}
	return d
}

// Serves reports whether a workspace may use the source.
func (s SourceConfig) Serves(workspace string) bool {
	return serves(s.Workspaces, workspace)
}

func (e *Editor) save(ctx context.Context, c comparison, by string) error {
	now, err := e.Clocks.Business(ctx)
	if err != nil {
		return err
	}
	wall, d, s := e.Clocks.Wall(), c.def, c.row
	v := Version{Definition: d, Number: s.Version + 1, Hash: d.Hash(), CreatedBy: by, CreatedAt: wall}
	ttl := wall.Add(e.Timing.RunRetention.Std())
	if s.Version == 0 {
		next, gaps, err := nextDue(d.Recurrence, now)
		if err != nil {
			return err
		}
		fresh := Schedule{ID: d.ID, Workspace: d.Workspace, Name: d.Name, NextDue: next}
		return e.Ledger.CreateSchedule(ctx, v, fresh, skips(d.ID, gaps), ttl, e.audit(d.ID, by, "create", "", "", "version 1"))
	}
	next, gaps := s.NextDue, []calendar.Skip(nil)
	if !c.old.Recurrence.SameTimes(d.Recurrence) {
		// Strictly after the last occurrence admitted, and after now: a time that the new rule has (cases V14, V15).
		from := now
		if s.LastNominal.After(from) {
			from = s.LastNominal
		}
		if next, gaps, err = nextDue(d.Recurrence, from); err != nil {
			return err
		}
	}
	if s.State != Active {
		gaps = nil
	}
	return e.Ledger.EditSchedule(ctx, v, s, next, skips(d.ID, gaps), ttl,
		e.audit(d.ID, by, "edit", "", fmt.Sprintf("version %d", s.Version), fmt.Sprintf("version %d", v.Number)))
}

func nextDue(spec calendar.Spec, after time.Time) (time.Time, []calendar.Skip, error) {
	rule, err := calendar.Parse(spec)
	if err != nil {
		return time.Time{}, nil, err
	}
	next := rule.Next(after)
	return next.At, next.Skipped, nil
}

// change reads a schedule and writes on the condition of what it read, again where it changed meanwhile.
func (e *Editor) change(ctx context.Context, id string, write func(Schedule) error) (Schedule, error) {
	for try := 0; ; try++ {
		s, err := e.Ledger.Schedule(ctx, id)
		if err != nil {
			return s, err
		}
		if s.State == Deleted {
			return s, ErrNotFound
		}
		err = write(s)
		var c *Conflict
		if errors.As(err, &c) && c.Schedule != nil && *c.Schedule != s && ctx.Err() == nil && try < rereads {
			continue
		}
		if err != nil {
			return s, err
		}
		return e.Ledger.Schedule(ctx, id)
	}
}

// Pause stops admission; runs admitted before are delivered.
func (e *Editor) Pause(ctx context.Context, id, reason, by string) (Schedule, error) {
	if ps := needReason(reason); ps != nil {
		return Schedule{}, ps
	}
	a := e.audit(id, by, "pause", reason, string(Active), string(Paused))
	return e.change(ctx, id, func(s Schedule) error { return e.Ledger.PauseSchedule(ctx, s, a) })
}

// Resume admits again, from the first due time in the future: nothing missed while paused is sent.
func (e *Editor) Resume(ctx context.Context, id, reason, by string) (Schedule, error) {
	if ps := needReason(reason); ps != nil {
		return Schedule{}, ps
	}
	a := e.audit(id, by, "resume", reason, string(Paused), string(Active))
	return e.change(ctx, id, func(s Schedule) error {
		def, err := e.Ledger.Outline(ctx, id, s.Version)
		if err != nil {
			return err
		}
		from, err := e.Clocks.Business(ctx)
		if err != nil {
			return err
		}
		if s.LastNominal.After(from) {
			from = s.LastNominal
		}
		next, gaps, err := nextDue(def.Recurrence, from)
		if err != nil {
			return err
		}
		if next.IsZero() {
			return Problems{input.Wrong("recurrence", fmt.Sprintf("%q, which has no occurrence after %s", def.Recurrence.String(), from.UTC().Format(time.RFC3339)), "a later end or a larger count: edit the schedule, then resume it")}
		}
		return e.Ledger.ResumeSchedule(ctx, s, next, skips(id, gaps), e.Clocks.Wall().Add(e.Timing.RunRetention.Std()), a)
	})
}

// Delete ends a schedule. Its item stays until its runs expire; a run that is not in work yet fails as
// schedule_deleted.
func (e *Editor) Delete(ctx context.Context, id, reason, by string) error {
	if ps := needReason(reason); ps != nil {
		return ps
	}
	a := e.audit(id, by, "delete", reason, "", string(Deleted))
	_, err := e.change(ctx, id, func(s Schedule) error {
		a.Before = string(s.State)
		return e.Ledger.DeleteSchedule(ctx, s, e.Clocks.Wall().Add(e.Timing.RunRetention.Std()), a)
	})
	return err
}

func needReason(reason string) error {
	var c checker
	c.Line("reason", reason, 200, true)
	if len(c.Problems) > 0 {
		return c.Problems
	}
	return nil
}

// RunNow admits a manual run under the caller's idempotency key. The same key again finds the same run; with another
// request it is a Conflict whose Why begins with "key reused".
func (e *Editor) RunNow(ctx context.Context, id, principal, key, requestHash string) (Run, bool, error) {
	s, err := e.Ledger.Schedule(ctx, id)
	if err != nil {
		return Run{}, false, err
	}
	if s.State == Deleted {
		return Run{}, false, ErrNotFound
	}
	def, err := e.Ledger.Outline(ctx, id, s.Version)
	if err != nil {
		return Run{}, false, err
	}
	now, err := e.Clocks.Business(ctx)
	if err != nil {
		return Run{}, false, err
	}
	r := NewRun(def, now, e.Clocks.Wall(), e.Timing)
	r.Manual, r.Occurrence, r.RequestedBy, r.RequestHash = true, ManualKey(principal, key), principal, requestHash
	if r.Groups, err = admitted(ctx, e.Ledger, def); err != nil {
		return r, false, err
	}
	a := e.audit(r.ID(), principal, "run now", "", "", fmt.Sprintf("version %d", r.Version))
	err = e.Ledger.Admit(ctx, Admission{Run: r, Token: e.Token(), TTL: e.Clocks.Wall().Add(e.Timing.RunRetention.Std()), Audit: &a})
	var c *Conflict
	if errors.As(err, &c) && c.Run != nil {
		return madeBefore("run now", *c.Run, nil, requestHash)
	}
	if err != nil {
		return r, false, err
	}
	Offer(ctx, e.Queue, []string{r.ID()}, e.Log)
	return r, true, nil
}

// ManualKey names a manual run by who asked and the key they asked with; never by a clock or a message.
func ManualKey(principal, key string) string {
	sum := sha256.Sum256([]byte(principal + "\n" + key))
	return "manual-" + hex.EncodeToString(sum[:16])
}

// PutWorkspace and PutSource save configuration.
func (e *Editor) PutWorkspace(ctx context.Context, w Workspace, by string) error {
	if ps := w.Check(); len(ps) > 0 {
		return ps
	}
	return e.Ledger.PutWorkspace(ctx, w, e.audit("workspace "+w.ID, by, "save", "", "", w.words()))
}

func (e *Editor) PutSource(ctx context.Context, s SourceConfig, by string) error {
	if ps := s.Check(); len(ps) > 0 {
		return ps
	}
	return e.Ledger.PutSource(ctx, s, e.audit("source "+s.Name, by, "save", "", "", s.Engine+" "+s.Place()))
}

// audit notes an act that is about to be done.
func (e *Editor) audit(subject, by, what, why, before, after string) Audit {
	return Audit{ID: e.Token(), Subject: subject, At: e.Clocks.Wall(), Who: by, What: what, Why: why, Before: before, After: after}
}

// diff lists the fields that differ, by their names in the definition. Long lists of recipients make one line.
func diff(a, b Definition) []string {
	var lines []string
	if max(len(a.Recipients), len(b.Recipients)) > listedRecipients {
		if line := diffRecipients(a.Recipients, b.Recipients); line != "" {
			lines = append(lines, line)
		}
		a.Recipients, b.Recipients = nil, nil
	}
	return append(lines, input.Diff(a, b)...)
}
