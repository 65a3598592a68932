//go:build cloud

package e2e

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"almanac/internal/schedule"

	"github.com/xuri/excelize/v2"
)

func TestADueOccurrenceBecomesOneFileForEachRecipient(t *testing.T) {
	scene(t)
	path := fmt.Sprintf("happy-%d", time.Now().UnixNano())
	d := save(t, func(d *schedule.Definition) { d.Recipients = append(d.Recipients, hook(path)) })
	run := due(t, d)
	r := settled(t, run)
	want(t, r, schedule.Succeeded, "")
	if r.Submitted != 2 || r.File == nil || r.File.Rows != 100 {
		t.Fatalf("submitted %d, file %+v; want 2 and 100 rows", r.Submitted, r.File)
	}
	m := mailed(t, run, 1)[0]
	if m.Fault != "" || len(m.Attachments) != 1 || m.Attachments[0].SHA256 != r.File.SHA256 || m.Attachments[0].Bytes != r.File.Bytes {
		t.Fatalf("mail %+v; want the recorded file attached: %+v", m, r.File)
	}
	got := hooks(t, path)
	if len(got) != 1 || !got[0].SignatureOK {
		t.Fatalf("webhook got %+v; want one signed request", got)
	}
	var body struct {
		Data struct {
			File struct {
				Rows   int64  `json:"rows"`
				SHA256 string `json:"sha256"`
				Link   string `json:"link"`
			} `json:"file"`
		} `json:"data"`
	}
	if err := readJSON(got[0].Body, &body); err != nil {
		t.Fatal(err)
	}
	content := download(t, body.Data.File.Link)
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != r.File.SHA256 || body.Data.File.SHA256 != r.File.SHA256 {
		t.Fatalf("the link gives other bytes than the recorded file")
	}
	rows, err := csv.NewReader(strings.NewReader(string(content))).ReadAll()
	if err != nil || len(rows) != 101 || strings.Join(rows[0], ",") != "flight_id,carrier,flight" {
		t.Fatalf("file of %d lines, header %v, %v", len(rows), rows[0], err)
	}
	// A tick more, and the same message again, make nothing.
	tick(t)
	send(t, "QueryRunsQueueUrl", schedule.EncodeMessage(run))
	drained(t)
	if n := len(hooks(t, path)); n != 1 {
		t.Fatalf("%d requests after a duplicate tick and a duplicate message, want 1", n)
	}
	if n := len(mails(t, run)); n != 1 {
		t.Fatalf("%d mails after a duplicate tick and a duplicate message, want 1", n)
	}
}

// download follows a link of ours: to a signed address, then to the bytes.
func download(t *testing.T, link string) []byte {
	t.Helper()
	status, location, _ := open(t, link)
	if status != http.StatusFound {
		t.Fatalf("link answers %d, want 302", status)
	}
	status, _, b := open(t, location)
	if status != http.StatusOK {
		t.Fatalf("signed address answers %d: %.200s", status, b)
	}
	return b
}

func TestTwoTicksAtOnceAdmitOnce(t *testing.T) {
	scene(t)
	d := save(t, nil)
	setClock(t, monday.Add(30*time.Minute))
	tallies := make(chan schedule.Tally, 2)
	for range 2 {
		go func() { tallies <- tick(t) }()
	}
	a, b := <-tallies, <-tallies
	run := d.ID + "@2013-05-06T10:30:00Z"
	want(t, settled(t, run), schedule.Succeeded, "")
	list, _, err := cloud.store.Runs(t.Context(), d.ID, "", 10)
	if err != nil || len(list) != 1 {
		t.Fatalf("%d runs (%v) after two ticks at once (%+v, %+v), want 1", len(list), err, a, b)
	}
	mailed(t, run, 1)
}

func TestWrongSQLFailsAtOnceAndSaysWhy(t *testing.T) {
	scene(t)
	d := save(t, func(d *schedule.Definition) { d.Query = "select carier from flights" })
	run := due(t, d)
	r := settled(t, run)
	want(t, r, schedule.Failed, "query_invalid")
	if r.Attempts != 1 || !strings.Contains(r.ErrorText, "carier") {
		t.Fatalf("attempts %d, message %q; want one attempt and the column's name", r.Attempts, r.ErrorText)
	}
	s, err := cloud.store.Schedule(t.Context(), d.ID)
	if err != nil || s.Streak != 1 || s.LastRunCode != "query_invalid" {
		t.Fatalf("schedule %+v, %v; want streak 1", s, err)
	}
	// What a person sees.
	status, b := call(t, "viewer", "GET", "/runs/"+run, nil)
	if status != 200 || !strings.Contains(string(b), "query_invalid") || !strings.Contains(string(b), "remedy") {
		t.Fatalf("%d %s", status, b)
	}
}

func TestAnEmptyResultIsSkippedOrSentByPolicy(t *testing.T) {
	scene(t)
	none := "select flight_id from flights where origin = 'nowhere'"
	t.Run("suppress", func(t *testing.T) {
		d := save(t, func(d *schedule.Definition) { d.Query, d.Empty = none, schedule.SuppressEmpty })
		run := due(t, d)
		r := settled(t, run)
		want(t, r, schedule.Skipped, "")
		if r.History != "skipped_empty" || len(outcomes(t, run)) != 0 || len(mails(t, run)) != 0 {
			t.Fatalf("history %q, %d submissions, %d mails", r.History, len(outcomes(t, run)), len(mails(t, run)))
		}
	})
	t.Run("deliver", func(t *testing.T) {
		d := save(t, func(d *schedule.Definition) { d.Query, d.Empty = none, schedule.DeliverEmpty })
		run := due(t, d)
		r := settled(t, run)
		want(t, r, schedule.Succeeded, "")
		m := mailed(t, run, 1)[0]
		b, err := os.ReadFile(m.Attachments[0].File)
		if err != nil || string(b) != "flight_id\r\n" {
			t.Fatalf("attachment %q, %v; want the header only", b, err)
		}
	})
}

func TestASpreadsheetIsAttachedAndOpens(t *testing.T) {
	scene(t)
	d := save(t, func(d *schedule.Definition) { d.File.Kind, d.File.Details = "xlsx", true })
	run := due(t, d)
	r := settled(t, run)
	want(t, r, schedule.Succeeded, "")
	m := mailed(t, run, 1)[0]
	if m.Fault != "" || len(m.Attachments) != 1 || m.Attachments[0].SHA256 != r.File.SHA256 || !strings.HasSuffix(m.Attachments[0].Name, " 2013-05-06 0630.xlsx") {
		t.Fatalf("mail %+v; want the recorded file attached: %+v", m, r.File)
	}
	book, err := excelize.OpenFile(m.Attachments[0].File)
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	rows, err := book.GetRows(book.GetSheetList()[0])
	if err != nil || len(rows) != 101 || strings.Join(rows[0], ",") != "flight_id,carrier,flight" {
		t.Fatalf("sheet of %d rows, %v; want the header and 100", len(rows), err)
	}
	for cell, want := range map[string]string{"B5": run, "B6": "America/New_York", "B7": "2013-05-06 06:30:00", "B9": "100"} {
		if got, err := book.GetCellValue("Run details", cell); err != nil || got != want {
			t.Errorf("%s of the details is %q, %v; want %q", cell, got, err, want)
		}
	}
}

func TestARefusedRecipientIsSkippedAndTheOthersGetTheirs(t *testing.T) {
	scene(t)
	path := fmt.Sprintf("gone-%d", time.Now().UnixNano())
	tell(t, path, map[string]any{"status": 410})
	d := save(t, func(d *schedule.Definition) {
		d.Recipients = append(d.Recipients, schedule.Recipient{Email: "second@example.com"}, hook(path))
	})
	run := due(t, d)
	r := settled(t, run)
	want(t, r, schedule.Succeeded, "")
	if r.Submitted != 2 || r.SkippedN != 1 {
		t.Fatalf("submitted %d, skipped %d; want 2 and 1", r.Submitted, r.SkippedN)
	}
	mailed(t, run, 2)
	if s := outcomes(t, run)[cloud.receiver+"/"+path]; s.State != schedule.NotDelivered || s.Reason != "refused" {
		t.Fatalf("outcome %s %s, want skipped refused", s.State, s.Reason)
	}
}

// V19 and D8 on the deployed functions: the waits are the profile's, the keys and bytes are equal.
func TestV19D8APassingRefusalIsTriedAgainUnderTheSameKeyWithEqualBytes(t *testing.T) {
	scene(t)
	path := fmt.Sprintf("busy-%d", time.Now().UnixNano())
	tell(t, path, map[string]any{"status": 503}, map[string]any{"status": 429, "retry_after": 1}, map[string]any{"status": 500}, map[string]any{"status": 200})
	d := save(t, func(d *schedule.Definition) { d.Recipients = append(d.Recipients, hook(path)) })
	run := due(t, d)
	r := settled(t, run)
	want(t, r, schedule.Succeeded, "")
	got := hooks(t, path)
	if len(got) != 4 || r.Attempts != 4 {
		t.Fatalf("%d requests in %d attempts, want 4 in 4", len(got), r.Attempts)
	}
	for _, g := range got {
		if g.ID != got[0].ID || g.BodySHA256 != got[0].BodySHA256 || !g.SignatureOK {
			t.Fatalf("request %+v differs from the first %+v", g, got[0])
		}
	}
	mailed(t, run, 1) // the other recipient was not asked again
}

func TestPausedSchedulesAdmitNothingAndResumeFromTheFuture(t *testing.T) {
	scene(t)
	d := save(t, nil)
	must(t, "POST", "/schedules/"+d.ID+"/pause", map[string]string{"reason": "holiday"})
	setClock(t, monday.Add(49*time.Hour))
	tick(t)
	must(t, "POST", "/schedules/"+d.ID+"/resume", map[string]string{"reason": "back"})
	tick(t)
	if list, _, err := cloud.store.Runs(t.Context(), d.ID, "", 10); err != nil || len(list) != 0 {
		t.Fatalf("%d runs of the time of the pause, %v; want none", len(list), err)
	}
	s, err := cloud.store.Schedule(t.Context(), d.ID)
	if want := time.Date(2013, 5, 9, 10, 30, 0, 0, time.UTC); err != nil || !s.NextDue.Equal(want) {
		t.Fatalf("next due %s, %v; want %s", s.NextDue, err, want)
	}
}

func TestRunNowIsAskedTwiceAndRunsOnce(t *testing.T) {
	scene(t)
	d := save(t, nil)
	ask := func() string {
		status, b := call(t, "operator", "POST", "/schedules/"+d.ID+"/runs", map[string]any{}, "Idempotency-Key", "k-"+d.ID)
		if status >= 300 {
			t.Fatalf("%d %s", status, b)
		}
		var r struct{ ID string }
		if err := json.Unmarshal(b, &r); err != nil {
			t.Fatal(err)
		}
		return r.ID
	}
	first, second := ask(), ask()
	if first != second {
		t.Fatalf("runs %s and %s, want one", first, second)
	}
	want(t, settled(t, first), schedule.Succeeded, "")
	mailed(t, first, 1)
	if status, _ := call(t, "viewer", "POST", "/schedules/"+d.ID+"/runs", map[string]any{}, "Idempotency-Key", "k"); status != 403 {
		t.Fatalf("a viewer may run: %d", status)
	}
}

func TestOneClickUnsubscribeHoldsForTheNextRun(t *testing.T) {
	scene(t)
	d := save(t, nil)
	run := due(t, d)
	settled(t, run)
	link := mailed(t, run, 1)[0].Unsubscribe
	req, err := http.NewRequestWithContext(t.Context(), "POST", link, strings.NewReader("List-Unsubscribe=One-Click"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := cloud.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 200 {
		t.Fatalf("unsubscribe answers %s", res.Status)
	}
	setClock(t, monday.Add(24*time.Hour+30*time.Minute))
	tick(t)
	next := d.ID + "@2013-05-07T10:30:00Z"
	r := settled(t, next)
	want(t, r, schedule.Succeeded, "")
	if r.Submitted != 0 || r.SkippedN != 1 || len(mails(t, next)) != 0 {
		t.Fatalf("submitted %d, skipped %d, mails %d after unsubscribing", r.Submitted, r.SkippedN, len(mails(t, next)))
	}
}

func TestALinkIsAliveAndThenExpires(t *testing.T) {
	scene(t)
	path := fmt.Sprintf("link-%d", time.Now().UnixNano())
	d := save(t, func(d *schedule.Definition) {
		d.Recipients = []schedule.Recipient{hook(path)}
		d.File.LinkLife = schedule.Duration(8 * time.Second)
	})
	run := due(t, d)
	want(t, settled(t, run), schedule.Succeeded, "")
	var body struct {
		Data struct {
			File struct{ Link string } `json:"file"`
		} `json:"data"`
	}
	if err := readJSON(hooks(t, path)[0].Body, &body); err != nil {
		t.Fatal(err)
	}
	link := body.Data.File.Link
	download(t, link)
	eventually(t, "the end of the link", func() (bool, string) {
		status, _, page := open(t, link)
		return status == http.StatusGone && strings.Contains(string(page), "ops@example.com"), fmt.Sprintf("%d %.100s", status, page)
	})
	if status, _, _ := open(t, link[:len(link)-4]+"AAAA"); status != http.StatusNotFound {
		t.Fatalf("a token that was guessed answers %d, want 404", status)
	}
}

func TestTheRuleFiresByItself(t *testing.T) {
	scene(t)
	d := save(t, nil)
	setClock(t, monday.Add(30*time.Minute))
	run := d.ID + "@2013-05-06T10:30:00Z"
	eventually(t, "a tick by the rule", func() (bool, string) {
		r, err := cloud.store.Run(t.Context(), run)
		if err != nil {
			return false, err.Error()
		}
		return r.Settled(), string(r.State)
	})
}
