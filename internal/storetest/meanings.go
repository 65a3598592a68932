package storetest

import (
	"time"

	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/snapshot"
	"almanac/internal/transition"
)

// meaning is what a guard comes to on a row: attributes and facts in which it holds, and attributes in which it fails.
type meaning struct {
	holds   row
	facts   func(*Facts)
	fails   []row
	reread  bool // the caller reads after the guard was falsified: it compares the row with a fact, not with a read
	decided bool // only a caller can decide it
}

var recordedFile = row{schema.FileKey: "30d/run/worker-0/delays.csv", schema.FileName: "delays.csv", schema.FileRows: 3, schema.FileBytes: 120, schema.FileSHA: "ab12", schema.FileAsOf: wall}

func emptied(f row) row { return f.with(row{schema.FileRows: 0}) }

var (
	byCaller = meaning{decided: true}
	// onAbsence fails in every state walk: there the row is.
	onAbsence = meaning{}
	owned     = meaning{holds: row{schema.Owner: "worker-1"}, facts: func(f *Facts) { f.Owner = "worker-1" }, fails: []row{{schema.Owner: "worker-9"}}}
)

// byItsCaller reports a guard that DynamoDB cannot decide on the row that moves: because nothing on a row tells, or
// because the row is not there yet and the guard speaks of another.
func byItsCaller(from string, g transition.Guard) bool {
	m := meanings[g]
	return m.decided || from == transition.Absent && len(m.fails) > 0
}

var meanings = map[transition.Guard]meaning{
	schedule.NoRun:          onAbsence,
	schedule.NoSubmission:   onAbsence,
	schedule.NoSchedule:     onAbsence,
	schedule.ScheduleAsRead: byCaller,
	schedule.WakeAsRead: {holds: row{schema.WakeAt: wall.Add(-time.Minute)}, facts: func(f *Facts) { f.Wake = wall.Add(-time.Minute) },
		fails: []row{{schema.WakeAt: wall.Add(-time.Second)}, {schema.WakeAt: nil}}},
	schedule.WakePast:       {fails: []row{{schema.WakeAt: wall.Add(time.Millisecond)}}, reread: true},
	schedule.FromDLQ:        {holds: row{schema.WakeAt: wall.Add(time.Hour)}, facts: func(f *Facts) { f.Wake = wall.Add(time.Hour) }, decided: true},
	schedule.AttemptsRemain: {holds: row{schema.AttemptsLeft: 1}, fails: []row{{schema.AttemptsLeft: 0}}},
	schedule.AttemptsSpent:  {holds: row{schema.AttemptsLeft: 0}, fails: []row{{schema.AttemptsLeft: 1}}},
	schedule.LeaseEnded: {holds: row{schema.LeaseOwner: "worker-1", schema.LeaseEnd: wall.Add(-time.Millisecond)},
		fails: []row{{schema.LeaseOwner: "worker-9", schema.LeaseEnd: wall.Add(time.Hour)}, {schema.LeaseOwner: "worker-9", schema.LeaseEnd: wall}}},
	schedule.OwnLease: {holds: row{schema.LeaseOwner: "worker-1", schema.LeaseEnd: wall.Add(time.Minute)}, facts: func(f *Facts) { f.Owner = "worker-1" },
		fails: []row{{schema.LeaseOwner: "worker-9"}, {schema.LeaseOwner: nil, schema.LeaseEnd: nil}}},
	schedule.YieldsRemain:   {holds: row{schema.Yields: 199}, fails: []row{{schema.Yields: 200}}},
	schedule.OutOfTimeG:     byCaller,
	schedule.Progress:       byCaller,
	schedule.NoFile:         {holds: row{schema.File: nil}, fails: []row{{schema.File: recordedFile}}},
	schedule.FileRecorded:   {holds: row{schema.File: recordedFile}, fails: []row{{schema.File: nil}}},
	schedule.EmptyFile:      {holds: row{schema.File: emptied(recordedFile)}, fails: []row{{schema.File: recordedFile}}},
	schedule.FileAsRead:     {fails: []row{{schema.File: recordedFile.with(row{schema.FileKey: "30d/run/worker-9/delays.csv"})}}},
	schedule.NoQuery:        {holds: row{schema.QueryID: nil}, fails: []row{{schema.QueryID: "query-9"}}},
	schedule.QueryEnded:     {holds: row{schema.QueryID: "query-0", schema.QueryEnded: true}, fails: []row{{schema.QueryEnded: nil}, {schema.QueryEnded: false}}},
	schedule.AllOutcomes:    byCaller,
	schedule.SourceIsQuery:  byCaller,
	schedule.PolicySuppress: byCaller,
	schedule.PersonReason:   byCaller,

	schedule.LeaseByClock:   byCaller,
	schedule.TimeReserve:    byCaller,
	schedule.OwnSubmission:  owned,
	schedule.OriginalOwner:  owned,
	schedule.VerdictKnown:   byCaller,
	schedule.NothingTaken:   byCaller,
	schedule.RunLeaseHeld:   byCaller,
	schedule.MarkedNot:      {holds: row{schema.NotAccepted: true}, fails: []row{{schema.NotAccepted: nil}}},
	schedule.NotMarked:      {holds: row{schema.NotAccepted: nil}, fails: []row{{schema.NotAccepted: true}}},
	schedule.HonoursKeys:    byCaller,
	schedule.EmailChannel:   byCaller,
	schedule.EarlierEnded:   {holds: row{schema.Owner: "worker-1"}, facts: func(f *Facts) { f.Earlier = "worker-1" }, fails: []row{{schema.Owner: "worker-9"}}},
	schedule.ReplyLost:      byCaller,
	schedule.RunAboutToFail: byCaller,
	schedule.RunHasFile:     byCaller,

	schedule.AsRead: {holds: row{schema.Version: 2, schema.NextDueAt: nextDue},
		facts: func(f *Facts) {
			f.Schedule = &schedule.Schedule{Version: 2, NextDue: nextDue, OpenRun: "2013-06-03T12:00:00Z"}
		},
		fails: []row{{schema.Version: 3}, {schema.NextDueAt: nextDue.Add(time.Hour)}}},
	schedule.OpenAsRead:  {holds: row{schema.OpenRun: "2013-06-03T12:00:00Z"}, fails: []row{{schema.OpenRun: "2013-06-02T12:00:00Z"}, {schema.OpenRun: nil}}},
	schedule.PauseReason: byCaller,

	snapshot.NoVersionRow:   onAbsence,
	snapshot.HeadFree:       byCaller,
	snapshot.HeadNotActive:  byCaller,
	snapshot.Eligible:       byCaller,
	snapshot.OtherReason:    byCaller,
	snapshot.CapsPermit:     byCaller,
	snapshot.RetryScheduled: {holds: row{schema.NextAttempt: wall.Add(-time.Minute)}, fails: []row{{schema.NextAttempt: nil}}},
	snapshot.RetryDue:       {holds: row{schema.NextAttempt: wall}, fails: []row{{schema.NextAttempt: wall.Add(time.Millisecond)}}, reread: true},
	snapshot.SameJob:        ofJob,
	snapshot.JobAsRead:      ofJob,
	snapshot.NoJobAttached:  {holds: row{schema.Execution: nil}, fails: []row{{schema.Execution: "arn:another"}}},
	snapshot.WaitedFive: {holds: row{schema.OfferedAt: offered},
		facts: func(f *Facts) { f.Run.OfferedAt, f.Before = offered, offered },
		fails: []row{{schema.OfferedAt: offered.Add(time.Millisecond)}, {schema.OfferedAt: nil}}},
	snapshot.CursorAsRead: {holds: row{schema.Generation: 2, schema.Cursor: 12, schema.CursorKey: "i:1200"},
		facts: func(f *Facts) { f.Run.Generation, f.Run.Cursor = 2, snapshot.Cursor{Chunk: 12, Key: "i:1200"} },
		fails: []row{{schema.Cursor: 13}, {schema.CursorKey: "i:1201"}, {schema.CursorKey: nil}, {schema.Generation: 3}}},
	snapshot.QueryAsRead: {holds: row{schema.QueryID: "query-0", schema.QueryNoted: nil}, facts: func(f *Facts) { f.Run.Query.ID = "query-0" },
		fails: []row{{schema.QueryID: "query-9"}, {schema.QueryID: nil}}}, // that it was noted: notedQueries
	snapshot.CursorAtEnd: {holds: row{schema.CursorDone: true}, fails: []row{{schema.CursorDone: nil}, {schema.CursorDone: false}}},
	snapshot.NoQueryYet:  {holds: row{schema.QueryFor: nil}, fails: []row{{schema.QueryFor: purpose}}},
	// snapshot.QueryHasEnded has the words, and the meaning, of schedule.QueryEnded.
	snapshot.VerdictPassed: {holds: row{schema.Verdict: "passed", schema.Manifest: "cd34", schema.ComparedTo: 3},
		facts: func(f *Facts) { f.Run.Verdict, f.Current = &snapshot.Verdict{Manifest: "cd34"}, 3 },
		fails: []row{{schema.Verdict: "failed"}, {schema.Verdict: nil}, {schema.Manifest: "ef56"}, {schema.ComparedTo: 2}}},
	snapshot.CurrentAsRead:   byCaller,
	snapshot.ReasonGiven:     byCaller,
	snapshot.FailureCounted:  {holds: row{schema.Failures: 1}, facts: func(f *Facts) { f.Run.Failures = 1 }, fails: []row{{schema.Failures: 2}, {schema.Failures: nil}}},
	snapshot.AttemptPersonal: byCaller,
}

// ofJob is the fencing of the attempt job: an earlier and a later one are refused alike (N4). What a query is for is a fact
// of both alternatives that record one.
var ofJob = meaning{holds: row{schema.Job: 3}, facts: func(f *Facts) { f.Run.Job, f.Query = 3, purpose }, fails: []row{{schema.Job: 4}, {schema.Job: 2}, {schema.Job: nil}}}
