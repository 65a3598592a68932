package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/input"
	"almanac/internal/memcloud"
	"almanac/internal/snapshot"
	"almanac/internal/source"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/athena/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// A month of Athena: one query for its rows and one for its control, cut into chunks, whole to the last cell in each format.
func TestAMonthOfAthena(t *testing.T) {
	for _, format := range []snapshot.FileFormat{snapshot.Parquet, snapshot.CSV} {
		d := lakeTrips()
		d.Format = format
		l := newLake(t, d, 250)
		r := l.publish(newark)
		m := l.current(newark)
		if got := l.rows(m); !slices.Equal(got, expected(0, 250)) {
			t.Fatalf("%s: %q", format, got)
		}
		started := l.api.Started()
		l.wantPaid(r.ID(), "1 rows", "1 control")
		if q := started[0]; q.SQL != "select * from (\n"+strings.NewReplacer(":workspace", "?", ":period_start", "?", ":period_end", "?").Replace(d.Query)+"\n) as month\norder by \"id\"" ||
			!slices.Equal(q.Parameters, []string{"'EWR'", "TIMESTAMP '2013-01-01 05:00:00.000000'", "TIMESTAMP '2013-02-01 05:00:00.000000'"}) {
			t.Errorf("%q %q", q.SQL, q.Parameters)
		}
		if r.Mode != snapshot.Chunked || len(m.Chunks) != 3 || m.Source != (snapshot.SourceRef{Name: "lake", Version: started[0].ID, Validated: started[1].ID}) {
			t.Errorf("%s, %d chunks, %+v", r.Mode, len(m.Chunks), m.Source)
		}
		// 101 megabytes, at 10 at least each
		if want := (source.Cost{Scanned: 101 << 20, Micros: 477 + 48}); r.QueryCost != want || l.counts["query_bytes_scanned"] != 101<<20 || l.counts["query_cost_micros"] != 477+48 {
			t.Errorf("%+v %v", r.QueryCost, l.counts)
		}
		if sums := m.Totals.Sums; len(sums) != 4 || sums["id"] != "311250" || sums["fare"] != "31236.25" || sums["delay"] != "-5" {
			t.Errorf("%v", sums)
		}
		if !slices.Equal(l.read, []int64{0, 0}) {
			t.Errorf("results were read from %v", l.read)
		}
	}
}

// A query that takes longer than a call of a step costs no attempt and nothing twice, neither of the two.
func TestAQueryOfAMonthOutlivesItsStep(t *testing.T) {
	l := newLake(t, lakeTrips(), 250)
	l.rowsOf[0].Takes, l.sumOf[0].Takes = 12*time.Minute, 8*time.Minute
	r := l.plan(newark)
	w := l.walk(l.claim(r.ID()))
	r = l.published(r.ID())
	l.wantPaid(r.ID(), "1 rows", "1 control")
	if r.Attempts != 1 || r.Failures != 0 || r.Generation != 1 || w.Failed {
		t.Fatalf("%+v", r)
	}
	var steps []string
	for _, line := range strings.Split(l.log.String(), "\n") {
		if strings.Contains(line, "the step is over") {
			_, step, _ := strings.Cut(line, "step=")
			step, rest, _ := strings.Cut(step, " ")
			steps = append(steps, step+" "+fmt.Sprint(strings.Contains(rest, "done=true")))
		}
	}
	want := []string{"start true", "generate false", "generate false", "generate true", "validate false", "validate true", "publish true"}
	if !slices.Equal(steps, want) {
		t.Errorf("%q", steps)
	}
}

// Whatever call a process dies at, before its effect or after it, each query is paid for once.
func TestOneQueryOfAMonthIsPaidForWhateverDies(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			l := newLake(t, lakeTrips(), 250)
			l.rowsOf[0].Takes, l.sumOf[0].Takes = 6*time.Minute, 6*time.Minute
			r := l.plan(newark)
			met := false
			l.fault = func(i int, _ memcloud.Call, late bool) bool {
				hit := i == n && late == after && !met
				met = met || hit
				return hit
			}
			w := l.walk(l.claim(r.ID()))
			if w.Failed {
				t.Fatalf("killed at call %d: the execution failed\n%s", n, l.log.String())
			}
			r = l.published(r.ID())
			l.fault = nil
			l.wantPaid(r.ID(), "1 rows", "1 control")
			if got := l.rows(l.current(newark)); !slices.Equal(got, expected(0, 250)) || r.Attempts != 1 {
				t.Fatalf("killed at call %d: %d rows, attempt %d", n, len(got), r.Attempts)
			}
			if !met {
				break
			}
		}
	}
}

// Calls that are short of time read on where the chunk before them ended: each byte of the result is read once.
func TestAResultIsReadOnAtTheCursor(t *testing.T) {
	d := lakeTrips()
	d.ChunkRows = 10
	l := newLake(t, d, 250)
	l.step = 25 * time.Second // a call has time for two or three chunks
	r := l.publish(newark)
	if got := l.rows(l.current(newark)); !slices.Equal(got, expected(0, 250)) {
		t.Fatalf("%d rows", len(got))
	}
	l.wantPaid(r.ID(), "1 rows", "1 control")
	places := l.read[:len(l.read)-1] // the last is the control query's
	if len(places) < 5 || !slices.IsSorted(places) || len(slices.Compact(slices.Clone(places))) != len(places) || places[0] != 0 {
		t.Errorf("read from %v", places)
	}
	if cur := r.Cursor; cur.Place == 0 || cur.Rows != 250 || !cur.Done {
		t.Errorf("%+v", cur)
	}
}

// An attempt that fails for another reason goes on in the same result.
func TestAFailedAttemptGoesOnInTheSameResult(t *testing.T) {
	l := newLake(t, lakeTrips(), 250)
	r := l.plan(newark)
	writes, away := 0, true
	broken := errors.New("the bucket is away")
	l.s3.Hooks.Before = func(ctx context.Context, c memcloud.Call) error {
		if c.Operation == "PutObject" {
			if writes++; writes >= 2 && away {
				return broken
			}
		}
		return l.hook(ctx, c, false)
	}
	l.walk(l.claim(r.ID()))
	if r = l.run(r.ID()); r.State != snapshot.Failed || r.Cursor.Chunk != 1 || r.ErrorCode != string(failure.FileUnavailable) {
		t.Fatalf("%s %s %+v", r.State, r.ErrorCode, r.Cursor)
	}
	away = false
	l.walk(l.claim(r.ID()))
	r = l.published(r.ID())
	l.wantPaid(r.ID(), "1 rows", "1 control")
	if r.Generation != 1 || r.Attempts != 2 || len(l.stopped) != 0 || l.read[1] == 0 {
		t.Errorf("%+v, stopped %q, read from %v", r, l.stopped, l.read)
	}
}

// A query that ends without a result for a reason that may pass fails the attempt; the next one asks under the next number.
func TestAQueryOfAMonthEndsWithoutAResult(t *testing.T) {
	l := newLake(t, lakeTrips(), 250)
	l.rowsOf = []memcloud.AthenaAnswer{lakeBroken(1, 100), lakeRows(250, 0)}
	l.sumOf = []memcloud.AthenaAnswer{lakeBroken(1, 100), lakeSums(250, 0)}
	r := l.plan(newark)
	for attempt, want := range []struct {
		from  snapshot.State
		query string
	}{{snapshot.Running, "1 rows"}, {snapshot.Validating, "1 control"}} {
		l.walk(l.claim(r.ID()))
		r = l.run(r.ID())
		if r.State != snapshot.Failed || r.FailedIn != want.from || r.ErrorCode != string(failure.SourceUnavailable) || r.Query.For != want.query || !r.Query.Ended || !r.Query.Noted {
			t.Fatalf("attempt %d: %s in %s, %s, %+v", attempt+1, r.State, r.FailedIn, r.ErrorCode, r.Query)
		}
	}
	l.walk(l.claim(r.ID()))
	r = l.published(r.ID())
	l.wantPaid(r.ID(), "1 rows", "1 rows", "1 control", "2 rows", "2 control")
	if len(l.stopped) != 0 {
		t.Errorf("stopped %q, which had ended", l.stopped)
	}
}

// A query that is refused is final, in either purpose; nobody is left to stop what has ended.
func TestAQueryOfAMonthIsRefused(t *testing.T) {
	for _, rows := range []bool{true, false} {
		l := newLake(t, lakeTrips(), 250)
		if rows {
			l.rowsOf = []memcloud.AthenaAnswer{lakeBroken(2, 1006)}
		} else {
			l.sumOf = []memcloud.AthenaAnswer{lakeBroken(2, 1006)}
		}
		r := l.plan(newark)
		l.walk(l.claim(r.ID()))
		if r = l.run(r.ID()); !r.Final() || r.ErrorCode != string(failure.QueryInvalid) || !r.Query.Noted || r.Query.Ended || len(l.stopped) != 0 {
			t.Errorf("%s %s %+v, stopped %q", r.State, r.ErrorCode, r.Query, l.stopped)
		}
	}
}

// A query that has used up its time was paid for: no attempt asks for another one.
func TestAQueryOfAMonthIsTooSlow(t *testing.T) {
	d := lakeTrips()
	d.Limits.Timeout = input.Duration(8 * time.Minute)
	l := newLake(t, d, 250)
	l.rowsOf[0].Takes = time.Hour
	r := l.plan(newark)
	l.walk(l.claim(r.ID()))
	r = l.run(r.ID())
	if !r.Final() || r.ErrorCode != string(failure.QueryTooSlow) || r.QueryCost.Micros == 0 || len(l.stopped) != 0 {
		t.Errorf("%s %s, %+v, stopped %q", r.State, r.ErrorCode, r.QueryCost, l.stopped)
	}
	l.wantPaid(r.ID(), "1 rows")
}

// Ten times the rows are ten times the chunks of the same two queries, and each byte of the result is read once, whatever
// number of calls that takes: none skips what those before it have read.
func TestTenTimesTheRowsOfAMonth(t *testing.T) {
	type measured struct{ calls, chunks, queries, read, result int }
	month := func(n int) (m measured) {
		d := lakeTrips()
		d.ChunkRows = 500
		l := newLake(t, d, n)
		l.step = 20 * time.Second // a call has time for some chunks
		l.metered = func(n int) {
			if len(l.api.Started()) == 1 {
				m.read += n
			}
		}
		r := l.publish(newark)
		if r.Cursor.Rows != int64(n) || r.Attempts != 1 {
			t.Fatalf("%+v", r.Cursor)
		}
		out, err := l.s3.HeadObject(bg, &s3.HeadObjectInput{Bucket: aws.String("results"), Key: aws.String(l.api.Started()[0].ID + ".csv")})
		l.must(err)
		return measured{len(l.read) - 1, r.Cursor.Chunk, len(l.api.Started()), m.read, int(*out.ContentLength)}
	}
	one, ten := month(2_000), month(20_000)
	if one.chunks != 4 || ten.chunks != 40 || one.queries != 2 || ten.queries != 2 || ten.calls < 4 {
		t.Errorf("%+v, then %+v", one, ten)
	}
	for _, m := range []measured{one, ten} {
		// what a call had in its buffer when it left, of 256 KiB, is read by the next one again
		if over := m.read - m.result; over < 0 || over > m.calls*256<<10 {
			t.Errorf("%+v", m)
		}
	}
}

// A result that is gone once chunks were cut from it is asked for anew, in a new generation: no month is of two results.
func TestAResultThatIsGone(t *testing.T) {
	for _, chunks := range []int{0, 1} {
		d := lakeTrips()
		l := newLake(t, d, 250)
		r := l.plan(newark)
		l.s3.Hooks.After = func(ctx context.Context, c memcloud.Call) error {
			if (chunks == 0 && c.Service == memcloud.ServiceAthena && c.Operation == "GetQueryResults" || chunks > 0 && c.Operation == "PutObject") && len(l.api.Started()) == 1 {
				id := l.api.Started()[0].ID
				_, err := l.s3.DeleteObject(bg, &s3.DeleteObjectInput{Bucket: aws.String("results"), Key: aws.String(id + ".csv")})
				l.must(err)
			}
			return l.hook(ctx, c, true)
		}
		l.api.Hooks.After = l.s3.Hooks.After
		if chunks > 0 {
			l.step = time.Minute // one chunk a call
		}
		l.walk(l.claim(r.ID()))
		if r = l.run(r.ID()); r.State != snapshot.Failed || r.Cursor.Chunk != chunks || !r.Query.Ended || r.ErrorCode != string(failure.SourceUnavailable) {
			t.Fatalf("%d chunks: %s %s %+v %+v\n%s", chunks, r.State, r.ErrorCode, r.Cursor, r.Query, l.log.String())
		}
		l.step = time.Millisecond
		l.walk(l.claim(r.ID()))
		r = l.published(r.ID())
		if got := l.rows(l.current(newark)); !slices.Equal(got, expected(0, 250)) || r.Generation != 1+chunks {
			t.Errorf("%d rows, generation %d", len(got), r.Generation)
		}
		g := fmt.Sprint(1 + chunks)
		l.wantPaid(r.ID(), "1 rows", g+" rows", g+" control")
	}
}

// A call that comes after the result was found gone, in the same job, asks for no other result: the next attempt does.
func TestNoMonthIsOfTwoResults(t *testing.T) {
	l := newLake(t, lakeTrips(), 250)
	r := l.plan(newark)
	j := l.claim(r.ID())
	l.step = time.Minute
	for _, step := range []string{snapshot.StepStart, snapshot.StepGenerate} {
		_, err := l.call(bg, snapshot.StepInput{Step: step, Job: j})
		l.must(err)
	}
	if r = l.run(r.ID()); r.Cursor.Chunk == 0 || r.Cursor.Done {
		t.Fatalf("%+v", r.Cursor)
	}
	_, err := l.ledger.NoteQuery(bg, r, true, source.Cost{})
	l.must(err)
	_, err = l.call(bg, snapshot.StepInput{Step: snapshot.StepGenerate, Job: j})
	if f := failure.From(err); f == nil || f.Code != failure.SourceChanged || len(l.api.Started()) != 1 {
		t.Errorf("%v, %d queries", err, len(l.api.Started()))
	}
}

// What a month of Athena cannot be is said, for good.
func TestWhatAMonthOfAthenaCannotBe(t *testing.T) {
	wide := lakeRows(1, 0)
	for i := range snapshot.MaxSummed {
		wide.Columns = append(wide.Columns, types.ColumnInfo{Name: aws.String(fmt.Sprint("n", i)), Type: aws.String("bigint")})
		wide.Rows[0] = append(wide.Rows[0], aws.String("1"))
	}
	other := lakeSums(250, 0)
	other.Columns[1].Name = aws.String("speed")
	text := lakeSums(250, 0)
	text.Columns[1].Name = aws.String("carrier")
	day := lakeRows(3, 0)
	day.Columns[0].Type = aws.String("date")
	for i := range day.Rows {
		day.Rows[i][0] = aws.String(fmt.Sprintf("2013-01-0%d", i+1))
	}
	for name, row := range map[string]struct {
		change func(*snapshot.Definition, *lake)
		code   failure.Code
		says   string
	}{
		"a single pass":             {func(d *snapshot.Definition, _ *lake) { d.Mode = snapshot.Single }, failure.DefinitionInvalid, "mode: single"},
		"no such key":               {func(d *snapshot.Definition, _ *lake) { d.Key = "nr" }, failure.DefinitionInvalid, `key names the column "nr"`},
		"a key of dates":            {func(_ *snapshot.Definition, l *lake) { l.rowsOf[0] = day }, failure.KeyInvalid, "a key is date"},
		"too many numbers":          {func(_ *snapshot.Definition, l *lake) { l.rowsOf[0] = wide }, failure.DefinitionInvalid, "304 columns of numbers"},
		"a sum of no column":        {func(_ *snapshot.Definition, l *lake) { l.sumOf[0] = other }, failure.DefinitionInvalid, `"speed"`},
		"a sum of texts":            {func(_ *snapshot.Definition, l *lake) { l.sumOf[0] = text }, failure.DefinitionInvalid, `"carrier"`},
		"more rows than its limit":  {func(d *snapshot.Definition, _ *lake) { d.Limits.Rows = 120 }, failure.QueryTooManyRows, "120 rows"},
		"other rows than they were": {func(_ *snapshot.Definition, l *lake) { l.sumOf[0] = lakeSums(251, 0) }, failure.ValidationMismatch, "expected 251, found 250"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLake(t, lakeTrips(), 250)
			d := lakeTrips()
			row.change(&d, l)
			l.save(d, 2)
			r := l.plan(newark, func(r *snapshot.Run) { r.Definition = 2 })
			l.walk(l.claim(r.ID()))
			if r = l.run(r.ID()); r.State != snapshot.Failed || r.ErrorCode != string(row.code) || !strings.Contains(r.ErrorText, row.says) {
				t.Errorf("%s %s: %s", r.State, r.ErrorCode, r.ErrorText)
			}
		})
	}
}

// A mode that was kept from another engine of the source is refused as well.
func TestASourceBecomesAthenasBetweenAttempts(t *testing.T) {
	l := newLake(t, lakeTrips(), 250)
	sqlite := l.attempts.def
	sqlite.Mode = snapshot.Single
	l.save(sqlite, 2)
	r := l.plan(newark, func(r *snapshot.Run) { r.Definition = 2 })
	j := l.claim(r.ID())
	_, err := l.ledger.Begin(bg, l.run(r.ID()), snapshot.Beginning{Mode: snapshot.Single, Generation: 1, Basis: snapshot.Basis{Definition: 2, Start: r.Start, End: r.End}, Now: l.now})
	l.must(err)
	_, err = l.call(bg, snapshot.StepInput{Step: snapshot.StepGenerate, Job: j})
	if f := failure.From(err); f == nil || f.Code != failure.DefinitionInvalid || !strings.Contains(f.Message, `"lake"`) {
		t.Error(err)
	}
}

// A run that is cancelled while its control query is started ends the step, which asks nothing more: the query that was
// started for nobody is stopped.
func TestAMonthIsCancelledWhileItsControlQueryStarts(t *testing.T) {
	l := newLake(t, lakeTrips(), 250)
	r := l.plan(newark)
	j := l.claim(r.ID())
	cancelled := false
	l.fault = func(_ int, c memcloud.Call, after bool) bool {
		if !after && !cancelled && strings.Contains(wished(c).input, "1 control") {
			cancelled = true
			l.must(l.ledger.Cancel(bg, l.run(r.ID()), snapshot.Cancellation{Reason: snapshot.ReasonOperator, Text: "wrong", By: "ann", At: l.now,
				Audit: &snapshot.Audit{ID: "c", Subject: r.ID(), Who: "ann", What: "cancel", Why: "wrong", At: l.now}}))
		}
		return false
	}
	l.walk(j)
	if r = l.run(r.ID()); !cancelled || r.State != snapshot.Cancelled {
		t.Fatalf("%s, cancelled %t", r.State, cancelled)
	}
	if n := len(l.api.Started()); n != 2 || len(l.stopped) != 1 {
		t.Errorf("%d queries were started, %q stopped", n, l.stopped)
	}
}
