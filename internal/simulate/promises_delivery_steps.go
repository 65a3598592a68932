package simulate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"almanac/internal/channel"
	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// actOn is whose audit a change must have, if it is a person's act; "" where it is none, or may be the product's own.
func actOn(c Change) string {
	pk, sk := Text(c.New, schema.PK), Text(c.New, schema.SK)
	switch {
	case c.Table != Schedules || c.New == nil:
	case isSchedule(c.New) && (c.Old == nil || differs(schema.Version)(c.Old, c.New) || figure(c.Old, schema.Version) != figure(c.New, schema.Version) ||
		differs(schema.State)(c.Old, c.New) && Text(c.New, schema.PausedBy) != schedule.System):
		return strings.TrimPrefix(pk, "SCHED#")
	case isRun(c.New) && (c.Old == nil && yes(c.New, schema.Manual) || c.Old != nil && (appears(schema.StopBy)(c.Old, c.New) || appears(schema.LinksRevoked)(c.Old, c.New))):
		return runID(c.New)
	case isSubmission(c.New) && c.Old != nil && (appears(schema.ResendWish)(c.Old, c.New) || appears(schema.RevokedAt)(c.Old, c.New) ||
		fromTo(schedule.Unknown, schedule.NotDelivered)(c.Old, c.New)):
		return runOfSub(c.New)
	case pk == "CONTROL":
		return schedule.ControlSubject
	case strings.HasPrefix(sk, schema.DeadPrefix) && c.Old != nil:
		return "dead letter " + strings.TrimPrefix(sk, schema.DeadPrefix)
	case strings.HasPrefix(pk, "GROUP#") && sk == "META":
		return schedule.GroupSubject(strings.TrimPrefix(pk, "GROUP#"))
	}
	return ""
}

// actsAudited holds acts and audits of one step against each other.
func actsAudited(_ *World, cs []Change) error {
	acts, late, audits := map[string]int{}, map[string]int{}, map[string]int{}
	for _, c := range cs {
		if subject := actOn(c); subject != "" {
			acts[subject]++
		}
		if isSubmission(c.New) && c.Old != nil && fromTo(schedule.Unknown, schedule.Submitted)(c.Old, c.New) {
			late[runOfSub(c.New)]++ // a person says so, or the receiver's late answer does
		}
		if subject, is := strings.CutPrefix(Text(c.New, schema.PK), "AUDIT#"); is && c.Table == Schedules && c.Old == nil {
			audits[subject]++
		}
	}
	for subject, n := range acts {
		if audits[subject] < n {
			return fmt.Errorf("%d acts on %s, and %d audits", n, subject, audits[subject])
		}
	}
	for subject, n := range audits {
		if kept := strings.HasPrefix(subject, "workspace") || strings.HasPrefix(subject, "source"); !kept && n > acts[subject]+late[subject] {
			return fmt.Errorf("%d audits of %s, and %d acts", n, subject, acts[subject])
		}
	}
	return nil
}

// leasesHeld notes the leases that are given, and holds each intent against them.
func leasesHeld(w *World, cs []Change) error {
	p := &w.delivery
	for _, c := range cs {
		if c.Table != Schedules || c.New == nil {
			continue
		}
		switch {
		case isRun(c.New):
			if token := Text(c.New, schema.LeaseOwner); token != "" && token != Text(c.Old, schema.LeaseOwner) {
				if before, given := p.leases[token]; given {
					return fmt.Errorf("%s held %s, and is given %s", token, before.run, runID(c.New))
				}
				p.leases[token] = held{runID(c.New), wallOf(c.New, schema.LeaseEnd)}
				if err := w.found(runID(c.New)); err != nil {
					return err
				}
			}
		case isSubmission(c.New):
			if err := w.intended(c); err != nil {
				return fmt.Errorf("%s: %w", c.Key(), err)
			}
		}
	}
	return nil
}

// intended holds an intent, or a take-over, against its owner's lease: by its own clock, which wrote the row, it has not
// ended.
func (w *World) intended(c Change) error {
	p := &w.delivery
	owner, run := Text(c.New, schema.Owner), runOfSub(c.New)
	switch {
	case Text(c.New, schema.State) != string(schedule.Pending) || owner == Text(c.Old, schema.Owner):
		return nil
	case c.Old != nil && fromTo(schedule.Unknown, schedule.Pending)(c.Old, c.New):
		return w.found(run) // a resend's operation holds the submission alone
	}
	lease, given := p.leases[owner]
	switch at := wallOf(c.New, schema.UpdatedAt); {
	case !given || lease.run != run:
		return fmt.Errorf("%s never held %s", owner, run)
	case at.After(lease.end):
		return fmt.Errorf("at %s by its clock, and %s held the run until %s", at, owner, lease.end)
	case w.alone() && Text(p.run(run), schema.LeaseOwner) != owner:
		return fmt.Errorf("%s intends, and %q holds the run", owner, Text(p.run(run), schema.LeaseOwner))
	}
	return nil
}

// found notes whom a new holder of a run finds on the schedule.
func (w *World) found(run string) error {
	p := &w.delivery
	sched, _, _ := schema.SplitRunID(run)
	state := p.row(schema.ScheduleKey(sched))
	there, err := w.named(sched, figure(state, schema.Version), nil)
	if err != nil || state == nil {
		return err
	}
	if p.reach[run] == nil {
		p.reach[run] = map[string]bool{}
	}
	for address := range there {
		p.reach[run][address] = true
	}
	return nil
}

// named are the addresses that a version of a schedule names, its groups in the versions that a run has; nil: as they
// stand now.
func (w *World) named(sched string, version int, groups map[string]int) (map[string]bool, error) {
	p := &w.delivery
	out := map[string]bool{}
	add := func(it Row, each func(schedule.Recipient)) error {
		var body struct{ Recipients []schedule.Recipient }
		if err := json.Unmarshal([]byte(Text(it, schema.Body)), &body); err != nil {
			return err
		}
		list, apart := p.objects[schema.ListKey(Text(it, schema.RecipientsHash))]
		if apart {
			if err := json.Unmarshal(list, &body.Recipients); err != nil {
				return fmt.Errorf("the list %s: %w", Text(it, schema.RecipientsHash), err)
			}
		}
		for _, r := range body.Recipients {
			each(r)
		}
		return nil
	}
	def := p.row(schema.DefinitionKey(sched, version))
	if def == nil {
		return out, nil
	}
	var inner error
	err := add(def, func(r schedule.Recipient) {
		if r.Group == "" {
			out[r.Address()] = true
			return
		}
		n := groups[r.Group]
		if groups == nil {
			n = figure(p.row(schema.GroupKey(r.Group)), schema.Version)
		}
		if version := p.row(schema.GroupVersionKey(r.Group, n)); version != nil && inner == nil {
			inner = add(version, func(m schedule.Recipient) { out[m.Address()] = true })
		}
	})
	if err == nil {
		err = inner
	}
	return out, err
}

// groupsOf are the versions of groups that a run was admitted with.
func groupsOfRun(run Row) map[string]int {
	out := map[string]int{}
	if m, ok := run[schema.Groups].(*types.AttributeValueMemberM); ok {
		for id := range m.Value {
			out[id] = figure(m.Value, id)
		}
	}
	return out
}

// settles gives the run that settled in a step; nil: none did.
func settles(cs []Change) *Change {
	for i, c := range cs {
		if c.Table == Schedules && isRun(c.row()) && c.Old != nil && settled(c.New) && !settled(c.Old) {
			return &cs[i]
		}
	}
	return nil
}

// countsTrue counts the submissions of a run that has just settled.
func countsTrue(w *World, cs []Change) error {
	c := settles(cs)
	if c == nil {
		return nil
	}
	p, run := &w.delivery, runID(c.New)
	n := map[schedule.SubmissionState]int{}
	for _, it := range p.submissions(run) {
		n[schedule.SubmissionState(Text(it, schema.State))]++
	}
	if figure(c.New, schema.Submitted) != n[schedule.Submitted] || figure(c.New, schema.Skipped) != n[schedule.NotDelivered] {
		// Late answers of a worker whose lease has ended may come between the count and the write.
		if w.alone() || figure(c.New, schema.Submitted) >= n[schedule.Submitted] || figure(c.New, schema.Skipped) != n[schedule.NotDelivered] {
			return fmt.Errorf("%s counts %d submitted and %d skipped; the rows are %v", run, figure(c.New, schema.Submitted), figure(c.New, schema.Skipped), n)
		}
	}
	if n[schedule.Pending] > 0 {
		return fmt.Errorf("%s settles, and %d of its submissions are pending", run, n[schedule.Pending])
	}
	if c.New[schema.File] == nil {
		return nil
	}
	if stateNow(c.New) == schedule.Skipped {
		return nil
	}
	sched, _, _ := schema.SplitRunID(run)
	all, err := w.named(sched, figure(c.New, schema.DefVersion), groupsOfRun(c.New))
	if err != nil {
		return err
	}
	want, got := len(all), n[schedule.Submitted]+n[schedule.NotDelivered]+n[schedule.Unknown]+n[schedule.NotSent]
	if targets, ok := c.New[schema.Targets].(*types.AttributeValueMemberL); ok {
		want = len(targets.Value)
	}
	if got != want {
		return fmt.Errorf("%s settles with %d submissions of %d recipients", run, got, want)
	}
	if bad := n[schedule.Unknown] + n[schedule.NotSent]; stateNow(c.New) == schedule.Succeeded && bad > 0 {
		return fmt.Errorf("%s succeeds, and the rows are %v", run, n)
	}
	return nil
}

// scheduleFollows holds what a settle changes on its schedule against the seed's rules, told anew.
func scheduleFollows(w *World, cs []Change) error {
	p := &w.delivery
	c := settles(cs)
	for _, s := range cs {
		if s.Table != Schedules || !isSchedule(s.row()) || s.Old == nil {
			continue
		}
		names := changed(s.Old, s.New)
		byASettle := slices.ContainsFunc(names, func(n string) bool { return n != schema.OpenRun && slices.Contains(effectful, n) })
		closed := Text(s.Old, schema.OpenRun) != "" && Text(s.New, schema.OpenRun) == ""
		if (byASettle || closed) && (c == nil || Text(c.New, schema.PK) != Text(s.New, schema.PK)) {
			return fmt.Errorf("%s changes %v, and none of its runs settles", s.Key(), names)
		}
	}
	if c == nil {
		return nil
	}
	key := schema.Key{PK: schema.Partition(Text(c.New, schema.PK)), SK: "STATE"}
	was, is := p.row(key), p.row(key)
	for _, s := range cs {
		if s.Table == Schedules && isSchedule(s.row()) && Text(s.row(), schema.PK) == Text(c.New, schema.PK) {
			was = s.Old
		}
	}
	if is == nil {
		return nil
	}
	return followed(w, *c, was, is)
}

func followed(w *World, c Change, was, is Row) error {
	_, occurrence, _ := schema.SplitRunID(runID(c.New))
	code := failure.Code(Text(c.New, schema.ErrorCode))
	entry, _ := failure.Lookup(code)
	failed := stateNow(c.New) == schedule.Failed
	want := map[string]string{}
	for _, n := range []string{schema.LastRun, schema.LastRunNominal, schema.OpenRun} {
		want[n] = Text(was, n)
	}
	streak := figure(was, schema.Streak)
	if later := wallOf(c.New, schema.Nominal).After(wallOf(was, schema.LastRunNominal)); later {
		want[schema.LastRun], want[schema.LastRunNominal] = occurrence, Text(c.New, schema.Nominal)
		switch {
		case failed && !entry.Quiet:
			streak++
		case stateNow(c.New) == schedule.Succeeded:
			streak = 0
		}
	}
	if Text(was, schema.OpenRun) == occurrence {
		want[schema.OpenRun] = ""
	}
	for n, v := range want {
		if Text(is, n) != v {
			return fmt.Errorf("%s settles as %s %s: %s is %q, want %q", runID(c.New), stateNow(c.New), code, n, Text(is, n), v)
		}
	}
	if figure(is, schema.Streak) != streak {
		return fmt.Errorf("%s settles as %s %s: the streak is %d, want %d", runID(c.New), stateNow(c.New), code, figure(is, schema.Streak), streak)
	}
	limit := w.limitOf(is)
	pauses := stateFrom(was) == schedule.Active && failed && (entry.Pauses || streak > figure(was, schema.Streak) && !yes(c.New, schema.Manual) && limit > 0 && streak >= limit)
	if paused := stateFrom(was) == schedule.Active && stateFrom(is) == schedule.Paused; paused != pauses {
		return fmt.Errorf("%s settles as %s %s with a streak of %d of %d: the schedule was %s and is %s", runID(c.New), stateNow(c.New), code, streak, limit, stateFrom(was), stateFrom(is))
	}
	return nil
}

// defOf is the definition that a schedule has now, as its row tells.
func (w *World) defOf(state Row) (d schedule.Definition) {
	sched := strings.TrimPrefix(Text(state, schema.PK), "SCHED#")
	it := w.delivery.row(schema.DefinitionKey(sched, figure(state, schema.Version)))
	if err := json.Unmarshal([]byte(Text(it, schema.Body)), &d); err != nil {
		w.Failf("version %d of %s: %v", figure(state, schema.Version), sched, err)
	}
	return d
}

// limitOf is the streak at which a schedule is paused; below 1: none.
func (w *World) limitOf(state Row) int {
	if d := w.defOf(state); d.PauseAfter != nil {
		return *d.PauseAfter
	}
	return schedule.DefaultPauseAfter
}

// noticesTold holds the notices that a step puts and takes away against what the step does.
func noticesTold(w *World, cs []Change) error {
	p := &w.delivery
	var put []string
	for _, c := range cs {
		id, is := strings.CutPrefix(Text(c.row(), schema.SK), schema.OutPrefix)
		if !is || c.Table != Schedules || Text(c.row(), schema.ResendWish) != "" {
			continue
		}
		switch {
		case c.Old == nil && p.notices[id]:
			return fmt.Errorf("notice %s is put twice", id)
		case c.Old == nil:
			p.notices[id] = true
			put = append(put, id)
		case c.New == nil && p.asked[id] == 0:
			return fmt.Errorf("notice %s is gone, and nobody was told", id)
		case c.New != nil && !wallOf(c.New, schema.NextAt).After(wallOf(c.Old, schema.NextAt)):
			return fmt.Errorf("notice %s is looked at earlier than before", id)
		case c.New != nil && Text(c.New, schema.Body) != Text(c.Old, schema.Body):
			return fmt.Errorf("notice %s says something else than before", id)
		}
	}
	var want []string
	if c := settles(cs); c != nil {
		key := schema.Key{PK: schema.Partition(Text(c.New, schema.PK)), SK: "STATE"}
		is, was := p.row(key), p.row(key)
		for _, s := range cs {
			if s.Table == Schedules && isSchedule(s.row()) && Text(s.row(), schema.PK) == string(key.PK) {
				was = s.Old
			}
		}
		if kind := toldBy(was, is, *c); kind != "" {
			for _, t := range w.defOf(is).Notify {
				normal, err := channel.Normalise(t.Channel(), t.Address())
				if err != nil {
					return err
				}
				want = append(want, schema.NoticeID(runID(c.New), kind, t.Channel(), channel.RecipientHash(t.Channel(), normal)))
			}
		}
	}
	slices.Sort(put)
	slices.Sort(want)
	if !slices.Equal(put, want) {
		return fmt.Errorf("put %v, want %v", put, want)
	}
	return nil
}

// toldBy is what people are told of a settle (lifecycles C): one notice at the first failure of a streak, one per pause,
// one on recovery.
func toldBy(was, is Row, c Change) string {
	before, after := figure(was, schema.Streak), figure(is, schema.Streak)
	switch {
	case is == nil || stateFrom(was) == schedule.Deleted:
	case stateFrom(was) == schedule.Active && stateFrom(is) == schedule.Paused:
		return string(channel.NoticePaused)
	case before == 0 && after == 1:
		return string(channel.NoticeFailed)
	case before > 0 && after == 0 && stateNow(c.New) == schedule.Succeeded:
		return string(channel.NoticeRecovered)
	}
	return ""
}

// missingOnly holds whom a retry sends to against what became of them in the run that it repeats.
func missingOnly(w *World, cs []Change) error {
	p := &w.delivery
	for _, c := range cs {
		of := Text(c.New, schema.RetryOf)
		targets, ok := c.New[schema.Targets].(*types.AttributeValueMemberL)
		if c.Table != Schedules || c.Old != nil || of == "" || !ok {
			continue
		}
		everyone := !w.alone() // what another has found out meanwhile, who retries need not know
		for _, a := range cs {
			everyone = everyone || Text(a.New, schema.PK) == "AUDIT#"+runID(c.New) && strings.HasSuffix(Text(a.New, schema.After), schedule.RetryEveryone)
		}
		for _, t := range targets.Value {
			key, _ := t.(*types.AttributeValueMemberS)
			name, hash, _ := strings.Cut(key.Value, "#")
			sub := p.row(schema.SubmissionKey(of, name, hash))
			state := Text(sub, schema.State)
			if !everyone && (state == string(schedule.Submitted) || state == string(schedule.Pending) || state == string(schedule.NotDelivered) && Text(sub, schema.Reason) != channel.ReasonRefused) {
				return fmt.Errorf("%s names %s, who is %s in %s", runID(c.New), key.Value, state, of)
			}
		}
	}
	return nil
}

// fileWhole holds a file that is recorded against its object.
func fileWhole(w *World, cs []Change) error {
	p := &w.delivery
	for _, c := range cs {
		file, ok := c.New[schema.File].(*types.AttributeValueMemberM)
		if c.Table != Schedules || !ok || !isRun(c.New) || c.Old[schema.File] != nil {
			continue
		}
		f, key := file.Value, Text(file.Value, schema.FileKey)
		body, there := p.objects[key]
		sum := sha256.Sum256(body)
		lines := strings.Count(string(body), "\n") - 1 // the header
		switch {
		case !there:
			return fmt.Errorf("%s: there is no object %s", runID(c.New), key)
		case hex.EncodeToString(sum[:]) != Text(f, schema.FileSHA) || len(body) != figure(f, schema.FileBytes):
			return fmt.Errorf("%s: %s has %d bytes and SHA-256 %x; the row says %d and %s", runID(c.New), key, len(body), sum, figure(f, schema.FileBytes), Text(f, schema.FileSHA))
		case lines != figure(f, schema.FileRows):
			return fmt.Errorf("%s: %s has %d rows; the row says %d", runID(c.New), key, lines, figure(f, schema.FileRows))
		case Text(c.New, schema.RetryOf) == "" && !strings.HasPrefix(key[strings.LastIndexByte(key, '/')+1:], Text(c.New, schema.LeaseOwner)):
			return fmt.Errorf("%s: %s is not of the holder %s", runID(c.New), key, Text(c.New, schema.LeaseOwner))
		}
	}
	return nil
}

// blobStays is that no object of the files bucket is written twice, but a list with equal bytes, or goes.
func blobStays(w *World, b Blob) error {
	if b.Bucket != FileBucket {
		return nil
	}
	if b.New == nil {
		return fmt.Errorf("it is gone")
	}
	if b.Old != nil && (!strings.HasPrefix(b.Key, schema.ListPrefix) || string(b.Old) != string(b.New)) {
		return fmt.Errorf("it is written again")
	}
	return nil
}
