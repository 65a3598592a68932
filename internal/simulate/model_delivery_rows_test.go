package simulate

import (
	"maps"
	"strconv"
	"strings"

	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// What of the rows of delivery the model speaks about. Both sides have it: the product's are decoded from the items.
type (
	aSchedule struct {
		State                        string
		Version                      int
		Due, Last                    ms
		Streak                       int
		LastRun, LastState, LastCode string
		LastNominal, Success         ms
		Open                         string
		SkipFirst                    ms
		SkipKind, Pause, PausedBy    string
	}
	aRun struct {
		State, Code                           string
		Version                               int
		Manual                                bool
		Nominal                               ms
		Attempts, Left, Yields, Offers, Deads int
		Leased                                bool
		LeaseEnd, Wake                        ms
		File                                  bool
		Rows                                  int
		FileEnd, LinkEnd                      ms
		Stop                                  bool
		Submitted, Skipped                    int
		History, RetryOf                      string
	}
	aSub struct {
		State, Reason  string
		Mark           bool
		RetryAt        ms
		Tries, Resends int
		Until          ms
		Wish           string
	}
	aSkip struct {
		First, Last ms
		Count       int
	}
	aOut struct {
		Next  ms
		Tries int
	}
)

// deliveryRows is the state of delivery: rows by their ids, and what receivers took.
type deliveryRows struct {
	schedules map[string]aSchedule
	runs      map[string]aRun
	subs      map[string]aSub // by run, a blank, channel#hash
	skips     map[string]aSkip
	out       map[string]aOut
	took      map[string]int // by address of mail, or by key of a webhook's request
}

func newDeliveryRows() deliveryRows {
	return deliveryRows{map[string]aSchedule{}, map[string]aRun{}, map[string]aSub{}, map[string]aSkip{}, map[string]aOut{}, map[string]int{}}
}

func (r deliveryRows) clone() deliveryRows {
	return deliveryRows{maps.Clone(r.schedules), maps.Clone(r.runs), maps.Clone(r.subs), maps.Clone(r.skips), maps.Clone(r.out), maps.Clone(r.took)}
}

// unlike tells where the product's rows differ from the model's; empty: nowhere.
func (r deliveryRows) unlike(model deliveryRows) string {
	for _, d := range []string{unlike("schedule", r.schedules, model.schedules), unlike("run", r.runs, model.runs), unlike("submission", r.subs, model.subs),
		unlike("skip", r.skips, model.skips), unlike("outbox", r.out, model.out), unlike("receiver of", r.took, model.took)} {
		if d != "" {
			return d
		}
	}
	return ""
}

// rowNumber is a numeric attribute; 0 where there is none.
func rowNumber(it Row, name string) int {
	if v, ok := it[name].(*types.AttributeValueMemberN); ok {
		n, err := strconv.Atoi(v.Value)
		if err != nil {
			panic("a row's number " + v.Value)
		}
		return n
	}
	return 0
}

func rowFlag(it Row, name string) bool {
	v, ok := it[name].(*types.AttributeValueMemberBOOL)
	return ok && v.Value
}

func keep[V any](rows map[string]V, key string, v V, there bool) {
	if there {
		rows[key] = v
	} else {
		delete(rows, key)
	}
}

// changed decodes a row that was written; new is nil where it was deleted.
func (r deliveryRows) changed(old, new Row) {
	key := new
	if key == nil {
		key = old
	}
	pk, sk := Text(key, schema.PK), Text(key, schema.SK)
	id, isSchedule := strings.CutPrefix(pk, "SCHED#")
	run, isRun := strings.CutPrefix(pk, "RUN#")
	kind, rest, _ := strings.Cut(sk, "#")
	switch {
	case isSchedule && sk == "STATE":
		keep(r.schedules, id, readSchedule(new), new != nil)
	case isSchedule && kind == "RUN":
		keep(r.runs, schema.RunID(id, rest), readRun(new), new != nil)
	case isSchedule && kind == "SKIP":
		keep(r.skips, id+" "+rest, aSkip{rowTime(new, schema.First), rowTime(new, schema.Last), rowNumber(new, schema.Count)}, new != nil)
	case isRun && kind == "SUB":
		keep(r.subs, run+" "+rest, readSub(new), new != nil)
	case strings.HasPrefix(pk, schema.OutboxPrefix):
		keep(r.out, rest, aOut{rowTime(new, schema.NextAt), rowNumber(new, schema.Tries)}, new != nil)
	}
}

func readSchedule(it Row) aSchedule {
	return aSchedule{State: Text(it, schema.State), Version: rowNumber(it, schema.Version), Due: rowTime(it, schema.NextDueAt), Last: rowTime(it, schema.LastNominal),
		Streak: rowNumber(it, schema.Streak), LastRun: Text(it, schema.LastRun), LastState: Text(it, schema.LastRunState), LastCode: Text(it, schema.LastRunCode),
		LastNominal: rowTime(it, schema.LastRunNominal), Success: rowTime(it, schema.LastSuccess), Open: Text(it, schema.OpenRun),
		SkipFirst: rowTime(it, schema.SkipFirst), SkipKind: Text(it, schema.SkipKind), Pause: Text(it, schema.PauseReason), PausedBy: Text(it, schema.PausedBy)}
}

func readRun(it Row) aRun {
	r := aRun{State: Text(it, schema.State), Code: Text(it, schema.ErrorCode), Version: rowNumber(it, schema.DefVersion), Manual: rowFlag(it, schema.Manual),
		Nominal: rowTime(it, schema.Nominal), Attempts: rowNumber(it, schema.Attempts), Left: rowNumber(it, schema.AttemptsLeft), Yields: rowNumber(it, schema.Yields),
		Offers: rowNumber(it, schema.Offers), Deads: rowNumber(it, schema.DeadLetters), Leased: Text(it, schema.LeaseOwner) != "", LeaseEnd: rowTime(it, schema.LeaseEnd),
		Wake: rowTime(it, schema.WakeAt), FileEnd: rowTime(it, schema.FileExpires), LinkEnd: rowTime(it, schema.LinkExpires), Stop: Text(it, schema.StopBy) != "",
		Submitted: rowNumber(it, schema.Submitted), Skipped: rowNumber(it, schema.Skipped), History: Text(it, schema.History), RetryOf: Text(it, schema.RetryOf)}
	if f, ok := it[schema.File].(*types.AttributeValueMemberM); ok {
		r.File, r.Rows = true, rowNumber(f.Value, schema.FileRows)
	}
	return r
}

// readSub leaves out what stands on a row and means nothing in its state.
func readSub(it Row) aSub {
	s := aSub{State: Text(it, schema.State), Reason: Text(it, schema.Reason), Tries: rowNumber(it, schema.Tries), Resends: rowNumber(it, schema.Resends), Wish: Text(it, schema.ResendWish)}
	if s.State == "pending" {
		s.Mark, s.Until = rowFlag(it, schema.NotAccepted), rowTime(it, schema.OwnerUntil)
		if s.Mark {
			s.RetryAt = rowTime(it, schema.RetryAt)
		}
	}
	return s
}
