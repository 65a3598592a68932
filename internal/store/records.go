package store

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"almanac/internal/channel"
	"almanac/internal/schedule"
	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func str(it item, name string) string {
	if v, ok := it[name].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	return ""
}

func num(it item, name string) int {
	if v, ok := it[name].(*types.AttributeValueMemberN); ok {
		n, _ := strconv.Atoi(v.Value)
		return n
	}
	return 0
}

func flag(it item, name string) bool {
	v, ok := it[name].(*types.AttributeValueMemberBOOL)
	return ok && v.Value
}

func raw(it item, name string) []byte {
	if v, ok := it[name].(*types.AttributeValueMemberB); ok {
		return v.Value
	}
	return nil
}

func list(it item, name string) []string {
	v, ok := it[name].(*types.AttributeValueMemberL)
	if !ok {
		return nil
	}
	var out []string
	for _, e := range v.Value {
		if s, ok := e.(*types.AttributeValueMemberS); ok {
			out = append(out, s.Value)
		}
	}
	return out
}

// numbers reads a map of whole numbers.
func numbers(it item, name string) map[string]int {
	m, ok := it[name].(*types.AttributeValueMemberM)
	if !ok {
		return nil
	}
	out := make(map[string]int, len(m.Value))
	for k := range m.Value {
		out[k] = num(m.Value, k)
	}
	return out
}

// times reads several stored instants and keeps the first error.
type times struct{ err error }

func (t *times) read(it item, name string) time.Time {
	v, err := schema.ParseTime(str(it, name))
	if err != nil && t.err == nil {
		t.err = fmt.Errorf("%s: %w", name, err)
	}
	return v
}

// compact drops what is empty, so that a row stays small and an absent value is an absent attribute.
func compact(m map[string]any) item {
	it := item{}
	for k, v := range m {
		switch v := v.(type) {
		case string:
			if v == "" {
				continue
			}
		case time.Time:
			if v.IsZero() {
				continue
			}
		case bool:
			if !v {
				continue
			}
		case nil:
			continue
		}
		it[k] = attr(v)
	}
	return it
}

func decodeSchedule(it item) (schedule.Schedule, error) {
	if len(it) == 0 {
		return schedule.Schedule{}, schedule.ErrNotFound
	}
	var t times
	s := schedule.Schedule{
		ID: string(keyOf(it).PK)[len("SCHED#"):], Workspace: str(it, schema.Workspace), Name: str(it, schema.Name),
		State: schedule.State(str(it, schema.State)), Version: num(it, schema.Version), NextDue: t.read(it, schema.NextDueAt),
		LastNominal: t.read(it, schema.LastNominal), Streak: num(it, schema.Streak), LastRun: str(it, schema.LastRun),
		LastRunNominal: t.read(it, schema.LastRunNominal), LastRunState: schedule.RunState(str(it, schema.LastRunState)),
		LastRunCode: str(it, schema.LastRunCode), LastSuccess: t.read(it, schema.LastSuccess), OpenRun: str(it, schema.OpenRun), SkipFirst: t.read(it, schema.SkipFirst), SkipKind: schedule.SkipKind(str(it, schema.SkipKind)),
		PauseReason: str(it, schema.PauseReason), PausedBy: str(it, schema.PausedBy), PausedAt: t.read(it, schema.PausedAt),
		CreatedAt: t.read(it, schema.CreatedAt),
	}
	return s, t.err
}

func encodeFile(f schedule.RecordedFile) item {
	return compact(map[string]any{schema.FileKey: f.Key, schema.FileName: f.Name, schema.FileRows: f.Rows, schema.FileBytes: f.Bytes,
		schema.FileSHA: f.SHA256, schema.FileAsOf: f.DataAsOf})
}

func decodeFile(it item) (*schedule.RecordedFile, error) {
	m, ok := it[schema.File].(*types.AttributeValueMemberM)
	if !ok {
		return nil, nil
	}
	var t times
	f := &schedule.RecordedFile{Key: str(m.Value, schema.FileKey), Name: str(m.Value, schema.FileName), Rows: int64(num(m.Value, schema.FileRows)),
		Bytes: int64(num(m.Value, schema.FileBytes)), SHA256: str(m.Value, schema.FileSHA), DataAsOf: t.read(m.Value, schema.FileAsOf)}
	return f, t.err
}

func decodeRun(it item) (schedule.Run, error) {
	if len(it) == 0 {
		return schedule.Run{}, schedule.ErrNotFound
	}
	var t times
	k := keyOf(it)
	r := schedule.Run{
		Schedule: strings.TrimPrefix(string(k.PK), "SCHED#"), Occurrence: strings.TrimPrefix(string(k.SK), schema.RunPrefix), Nominal: t.read(it, schema.Nominal),
		Manual: flag(it, schema.Manual), Version: num(it, schema.DefVersion), Workspace: str(it, schema.Workspace),
		State: schedule.RunState(str(it, schema.State)), Attempts: num(it, schema.Attempts), AttemptsLeft: num(it, schema.AttemptsLeft),
		Yields: num(it, schema.Yields), Offers: num(it, schema.Offers), DeadLetters: num(it, schema.DeadLetters),
		LeaseOwner: str(it, schema.LeaseOwner), LeaseEnd: t.read(it, schema.LeaseEnd),
		WakeAt: t.read(it, schema.WakeAt), FileExpires: t.read(it, schema.FileExpires), LinkExpires: t.read(it, schema.LinkExpires), LinksRevoked: t.read(it, schema.LinksRevoked), QueryNumber: num(it, schema.QueryNumber),
		QueryID: str(it, schema.QueryID), QueryEnded: flag(it, schema.QueryEnded), QueryCost: queryCost(it), ErrorCode: str(it, schema.ErrorCode),
		ErrorText: str(it, schema.ErrorText), StopBy: str(it, schema.StopBy), StopWhy: str(it, schema.StopWhy),
		RequestedBy: str(it, schema.RequestedBy), RequestHash: str(it, schema.RequestHash), RetryOf: str(it, schema.RetryOf), Targets: list(it, schema.Targets),
		TargetList: schedule.ListRef{Hash: str(it, schema.TargetsHash), Count: num(it, schema.TargetsCount)}, CreatedAt: t.read(it, schema.CreatedAt),
		SettledAt: t.read(it, schema.SettledAt), SettledBy: str(it, schema.SettledBy), Submitted: num(it, schema.Submitted),
		SkippedN: num(it, schema.Skipped), Groups: numbers(it, schema.Groups), History: str(it, schema.History), Timeline: list(it, schema.Timeline),
	}
	f, err := decodeFile(it)
	if err != nil && t.err == nil {
		t.err = err
	}
	r.File = f
	return r, t.err
}

// frozenRow is how Frozen is stored, beside a webhook's whole body; an e-mail is rendered again.
type frozenRow struct {
	Date     string `json:"d,omitempty"`
	Boundary string `json:"b,omitempty"`
	Attach   bool   `json:"a,omitempty"`
}

func encodeFrozen(f channel.Frozen) []byte {
	b, err := json.Marshal(frozenRow{schema.Time(f.Date), f.Boundary, f.Attach})
	if err != nil {
		panic("store: a frozen body that JSON cannot hold: " + err.Error()) // cannot happen: strings, bytes and a bool
	}
	return b
}

// deflate makes a body small, so that a submission stays below 1 KB and each of its writes costs one unit. What inflate
// gives back is equal to the last byte.
func deflate(body []byte) []byte {
	var b bytes.Buffer
	w := deflaters.Get().(*flate.Writer)
	defer deflaters.Put(w)
	w.Reset(&b)
	_, err := w.Write(body)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic("store: a body that memory cannot hold: " + err.Error()) // cannot happen: a buffer
	}
	return b.Bytes()
}

// deflaters are kept from one body to the next: each has tables of half a megabyte.
var deflaters = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.BestCompression)
	if err != nil {
		panic("store: " + err.Error()) // cannot happen: a known level
	}
	return w
}}

func inflate(stored []byte) ([]byte, error) {
	if len(stored) == 0 {
		return nil, nil
	}
	return io.ReadAll(flate.NewReader(bytes.NewReader(stored)))
}

func decodeSubmission(it item) (schedule.Submission, error) {
	if len(it) == 0 {
		return schedule.Submission{}, schedule.ErrNotFound
	}
	var t times
	k := keyOf(it)
	ch, hash := splitSub(k.SK)
	s := schedule.Submission{
		Run: string(k.PK)[len("RUN#"):], Channel: ch, RecipientHash: hash, Recipient: str(it, schema.Recipient),
		State: schedule.SubmissionState(str(it, schema.State)), Owner: str(it, schema.Owner), OwnerUntil: t.read(it, schema.OwnerUntil), Resends: num(it, schema.Resends),
		Wish: schedule.Wish{ID: str(it, schema.ResendWish), By: str(it, schema.ResendBy), Why: str(it, schema.ResendWhy)}, NotAccepted: flag(it, schema.NotAccepted),
		Tries: num(it, schema.Tries), Token: str(it, schema.Token), ProviderID: str(it, schema.ProviderID), Reason: str(it, schema.Reason),
		Detail: str(it, schema.Detail), RevokedAt: t.read(it, schema.RevokedAt), UpdatedAt: t.read(it, schema.UpdatedAt), RetryAt: t.read(it, schema.RetryAt),
	}
	s.Feedback = decodeFeedback(it, &t)
	if b := raw(it, schema.Frozen); len(b) > 0 {
		var f frozenRow
		if err := json.Unmarshal(b, &f); err != nil {
			return s, fmt.Errorf("submission %s: frozen body: %w", k, err)
		}
		date, err := schema.ParseTime(f.Date)
		if err != nil {
			return s, err
		}
		body, err := inflate(raw(it, schema.Body))
		if err != nil {
			return s, fmt.Errorf("submission %s: body: %w", k, err)
		}
		s.Frozen = channel.Frozen{Date: date, Boundary: f.Boundary, Body: body, Attach: f.Attach, BodyHash: str(it, schema.BodyHash)}
	}
	return s, t.err
}
