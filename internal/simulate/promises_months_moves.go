package simulate

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"almanac/internal/failure"
	"almanac/internal/schema"
	"almanac/internal/snapshot"
	"almanac/internal/transition"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// moved is what an event of table D may change of a month's row beside state and timeline, and what must hold between the
// row before and after it. It is written from the specification, not from the store.
type moved struct {
	may   []string
	holds func(old, new Row) error
}

var (
	indexed    = []string{schema.Work, schema.WorkAt}
	ending     = []string{schema.Work, schema.WorkAt, schema.SettledAt, schema.SettledShard}
	cursorOf   = []string{schema.Cursor, schema.CursorKey, schema.CursorRows, schema.CursorDone, schema.CursorPlace}
	verdictOf  = []string{schema.Verdict, schema.Manifest, schema.ComparedTo, schema.CheckList}
	queryOf    = []string{schema.QueryNumber, schema.QueryID, schema.QueryFor, schema.QueryEnded, schema.QueryNoted}
	notedOf    = []string{schema.QueryEnded, schema.QueryNoted, schema.QueryScanned, schema.QueryMicros}
	atPlanning = map[string]int{schema.Job: 0, schema.Attempts: 0, schema.Failures: 0}
)

var moveRules = map[snapshot.Event]moved{
	snapshot.Plan:           {nil, freshMonth},
	snapshot.PlanIneligible: {nil, freshMonth},
	snapshot.Request: {nil, func(old, new Row) error {
		return errors.Join(freshMonth(old, new), demand(Text(new, schema.RequestedBy) != "" && Text(new, schema.RequestWhy) != "", "nobody has asked for it"))
	}},
	snapshot.Claim: {slices.Concat(indexed, verdictOf, []string{schema.Job, schema.ClaimedAt, schema.OfferedAt, schema.Execution, schema.NextAttempt, schema.AdmittedBy}),
		func(old, new Row) error {
			return errors.Join(stepped(old, new, schema.Job), demand(Text(new, schema.Execution) == "" && Text(new, schema.Verdict) == "", "execution and verdict are another job's"),
				demand(stateOf(old) == snapshot.Planned || Text(old, schema.NextAttempt) != "" && Text(old, schema.NextAttempt) <= Text(new, schema.ClaimedAt), "its next attempt is not due"))
		}},
	snapshot.RetryNow: {append([]string{schema.NextAttempt}, schema.WorkAt), func(old, new Row) error {
		return demand(Text(old, schema.NextAttempt) != "" && Text(new, schema.NextAttempt) != "", "no retry is scheduled")
	}},
	snapshot.Reoffer: {[]string{schema.OfferedAt}, func(old, new Row) error {
		return demand(Text(old, schema.Execution) == "" && Text(old, schema.OfferedAt) < Text(new, schema.OfferedAt), "a job is attached, or it was offered before")
	}},
	snapshot.Attach:           {[]string{schema.Execution}, func(_, new Row) error { return demand(Text(new, schema.Execution) != "", "there is no execution") }},
	snapshot.Start:            {slices.Concat(cursorOf, []string{schema.Attempts, schema.StartedAt, schema.Execution, schema.Mode, schema.Generation, schema.Basis, schema.OfferedAt}), startedMonth},
	snapshot.Resume:           {nil, nil},
	snapshot.ResumeValidation: {nil, nil},
	snapshot.CommitChunk: {cursorOf, func(old, new Row) error {
		return errors.Join(stepped(old, new, schema.Cursor), demand(!truth(old, schema.CursorDone), "the month was at its end"),
			demand(figure(new, schema.CursorRows) >= figure(old, schema.CursorRows), "rows are gone"))
	}},
	snapshot.RecordQuery: {queryOf, recordedQuery},
	snapshot.NoteQuery: {notedOf, func(old, new Row) error {
		return errors.Join(demand(Text(old, schema.QueryID) != "" && truth(new, schema.QueryNoted), "there is no query, or nothing is noted of it"),
			demand(figure(new, schema.QueryScanned) >= figure(old, schema.QueryScanned), "bytes were taken back"),
			demand(!truth(old, schema.QueryNoted) || figure(new, schema.QueryScanned) == figure(old, schema.QueryScanned), "bytes are counted twice"))
	}},
	snapshot.BeginValidation: {nil, func(old, _ Row) error { return demand(truth(old, schema.CursorDone), "the month is not at its end") }},
	snapshot.RecordVerdict: {append([]string{schema.UpdatedAt}, verdictOf...), func(_, new Row) error {
		return demand((Text(new, schema.Verdict) == "passed") == (Text(new, schema.Manifest) != ""), "a month that passed has a manifest, and no other one has")
	}},
	snapshot.Publish: {ending, func(old, _ Row) error {
		return demand(Text(old, schema.Verdict) == "passed" && Text(old, schema.Manifest) != "", "no verdict has passed")
	}},
	snapshot.Fail: {slices.Concat(ending, []string{schema.Failures, schema.ErrorCode, schema.ErrorText, schema.NextAttempt, schema.FailedIn}), failedMonth},
	snapshot.Cancel: {append([]string{schema.Reason, schema.ReasonText, schema.CancelledBy, schema.NextAttempt}, ending...), func(old, new Row) error {
		return errors.Join(demand(Text(new, schema.Reason) != "" && Text(new, schema.CancelledBy) != "", "nobody says why"),
			demand(stateOf(old) != snapshot.Failed || Text(old, schema.NextAttempt) != "", "it had failed for good"))
	}},
}

// recordedQuery: another query of the same generation and purpose follows one that has ended without a result.
func recordedQuery(old, new Row) error {
	return errors.Join(stepped(old, new, schema.QueryNumber), demand(Text(new, schema.QueryID) != "" && !truth(new, schema.QueryNoted), "it has no id, or is noted before it was waited for"),
		demand(Text(old, schema.QueryFor) != Text(new, schema.QueryFor) || truth(old, schema.QueryEnded), "there was one, and it has not ended without a result"))
}

func demand(is bool, what string) error {
	if is {
		return nil
	}
	return errors.New(what)
}

// stepped demands that a figure has grown by one.
func stepped(old, new Row, name string) error {
	return demand(figure(new, name) == figure(old, name)+1, fmt.Sprintf("%s went from %d to %d", name, figure(old, name), figure(new, name)))
}

func freshMonth(_, new Row) error {
	for name, want := range atPlanning {
		if figure(new, name) != want {
			return fmt.Errorf("%s is %d", name, figure(new, name))
		}
	}
	skipped := stateOf(new) == snapshot.Skipped
	return demand(skipped == (Text(new, schema.Reason) != "") && skipped == (Text(new, schema.SettledAt) != ""), "a skipped month has a reason and its time, and no other one has")
}

// startedMonth: the mode is kept; a generation goes on at its cursor exactly where it may, otherwise the next one begins.
func startedMonth(old, new Row) error {
	if mode := Text(old, schema.Mode); mode != "" && mode != Text(new, schema.Mode) {
		return fmt.Errorf("mode %s became %s", mode, Text(new, schema.Mode))
	}
	generation := figure(old, schema.Generation)
	torn := figure(old, schema.Cursor) > 0 && truth(old, schema.QueryEnded) && Text(old, schema.QueryFor) == fmt.Sprintf("%d rows", generation)
	goesOn := generation > 0 && !torn && Text(old, schema.Mode) != string(snapshot.Single) && Text(old, schema.FailedIn) != string(snapshot.Validating) && Text(old, schema.Basis) == Text(new, schema.Basis)
	now := fmt.Sprintf("generation %d at chunk %d", figure(new, schema.Generation), figure(new, schema.Cursor))
	want := fmt.Sprintf("generation %d at chunk %d", generation, figure(old, schema.Cursor))
	if !goesOn {
		want = fmt.Sprintf("generation %d at chunk 0", generation+1)
	}
	for _, name := range cursorOf[1:] { // the number is in now and want
		if goesOn && !reflect.DeepEqual(old[name], new[name]) || !goesOn && (Text(new, name) != "" || figure(new, name) != 0 || truth(new, name)) {
			return fmt.Errorf("%s is %v after %v", name, plainly(new[name]), plainly(old[name]))
		}
	}
	return errors.Join(stepped(old, new, schema.Attempts), demand(now == want, "it begins "+now+", want "+want))
}

// failedMonth: the first three failures that may pass are followed by another attempt, every other one is for good.
func failedMonth(old, new Row) error {
	code := failure.Code(Text(new, schema.ErrorCode))
	passing := failure.New(code, "x").Passing()
	again := Text(new, schema.NextAttempt) != ""
	from := string(stateOf(old))
	if from == string(snapshot.Queued) && Text(old, schema.FailedIn) != "" {
		from = Text(old, schema.FailedIn) // the attempt never began
	}
	return errors.Join(stepped(old, new, schema.Failures), demand(code != "", "it has no code"),
		demand(again == (passing && figure(new, schema.Failures) < snapshot.MaxFailures), fmt.Sprintf("after failure %d with %s another attempt: %v", figure(new, schema.Failures), code, again)),
		demand(Text(new, schema.FailedIn) == from, "it says that it failed in "+Text(new, schema.FailedIn)+", and was "+from))
}

// moves: a month's row changes as one event of table D allows it.
func moves(_ *World, c Change) error {
	run, ok := runOfRow(c.New)
	if !ok {
		if _, was := runOfRow(c.Old); was {
			return errors.New("it was deleted")
		}
		return nil
	}
	from := snapshot.State(transition.Absent)
	if c.Old != nil {
		from = stateOf(c.Old)
		if settledRow(c.Old) {
			return nil // of which another promise speaks
		}
	}
	changes := changed(c.Old, c.New)
	if len(changes) == 0 {
		return nil
	}
	var why []error
	for _, row := range snapshot.Runs.Rows {
		if row.From != from || row.To != stateOf(c.New) {
			continue
		}
		err := moveRules[row.Event].allows(c, changes)
		if err == nil {
			return timelineGrows(c)
		}
		why = append(why, fmt.Errorf("%s: %w", row.Event, err))
	}
	return fmt.Errorf("%s went from %q to %q: %w", run, from, stateOf(c.New), errors.Join(append(why, errors.New("no event of the table does that"))...))
}

func (m moved) allows(c Change, changes []string) error {
	if c.Old != nil {
		for _, name := range changes {
			if name != schema.State && name != schema.Timeline && !slices.Contains(m.may, name) {
				return fmt.Errorf("%s changed from %v to %v", name, plainly(c.Old[name]), plainly(c.New[name]))
			}
		}
	}
	if m.holds == nil {
		return nil
	}
	return m.holds(c.Old, c.New)
}

func timelineGrows(c Change) error {
	before, after := timeline(c.Old), timeline(c.New)
	return demand(len(after) >= len(before) && slices.Equal(before, after[:len(before)]), fmt.Sprintf("its timeline was %q and is %q", before, after))
}

func timeline(it Row) (out []string) {
	if l, ok := it[schema.Timeline].(*types.AttributeValueMemberL); ok {
		for _, v := range l.Value {
			out = append(out, v.(*types.AttributeValueMemberS).Value)
		}
	}
	return out
}
