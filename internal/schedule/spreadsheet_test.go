package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"

	"almanac/internal/schedule"
)

// What a definition asks for and what the run is known by meet in the file: its kind, its zone, its details.
func TestASpreadsheetIsDeliveredInTheZoneOfItsName(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "a@x.com", "b")
	d.File.Kind, d.File.Details = "xlsx", true
	d.Recurrence.Cron, d.Recurrence.Zone = "0 18 * * *", "Asia/Kolkata" // 12:30 UTC
	run := w.admitted(d)
	w.quiet()
	r := w.wantState(run, schedule.Succeeded, "")
	day := firstDue.Format("2006-01-02")
	if r.File.Name != "Delays s "+day+" 1800.xlsx" || !strings.HasSuffix(r.File.Key, ".xlsx") || r.File.Rows != 4 {
		t.Errorf("file %+v", r.File)
	}
	book, err := excelize.OpenReader(strings.NewReader(w.object(r.File.Key)))
	w.must(err)
	defer book.Close()
	rows, err := book.GetRows("Delays s")
	w.must(err)
	var lines []string
	for _, r := range rows {
		lines = append(lines, strings.Join(r, ","))
	}
	if got, want := strings.Join(lines, "|"), "id,carrier,delay|1,UA,5|2,B6|3,=1+1,-7|4,AA,9007199254740993"; got != want {
		t.Errorf("rows %s, want %s", got, want)
	}
	details, err := book.GetRows("Run details")
	w.must(err)
	got := map[string]string{}
	for _, r := range details {
		got[r[0]] = r[1]
	}
	for label, want := range map[string]string{"Schedule": "Delays s", "Schedule id": "s", "Workspace": "EWR", "Source": "flights", "Run": run, "Time zone": "Asia/Kolkata",
		"Due": day + " 18:00:00", "Data as of": r.File.DataAsOf.Add(5*time.Hour + 30*time.Minute).UTC().Format("2006-01-02 15:04:05"), "Rows": "4"} {
		if got[label] != want {
			t.Errorf("details say %q of %q, want %q", got[label], label, want)
		}
	}
	w.wantSub(run, "b", schedule.Submitted, "")
}
