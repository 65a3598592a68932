package athena_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/source"
	"almanac/internal/source/athena"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// cells is an answer of one column, with what CSV must quote.
var cells = []string{"a", "", "two\nlines", `"quoted", twice`, strings.Repeat("é", 1000), "z"}

// A result is read on from each place where a reader may have left it, as far as its end, and nothing before it is read again.
func TestARowIsFoundAgainByItsPlace(t *testing.T) {
	h := newHeld(t)
	h.answer.Columns, h.answer.Rows = columns("varchar"), nil
	for i := range cells {
		h.answer.Rows = append(h.answer.Rows, []*string{&cells[i]}, []*string{nil})
	}
	read := func(from int64) (out []string, places []int64) {
		ticket := h.ticket("1", "")
		ticket.From = from
		rows, err := h.Apart().Open(t.Context(), source.Query{SQL: "SELECT c0 FROM lake", Ticket: ticket})
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for {
			row, err := rows.Next(t.Context())
			if errors.Is(err, io.EOF) {
				return out, places
			}
			if err != nil {
				t.Fatal(err)
			}
			text := "NULL"
			if row[0].Kind == source.KindText {
				text = "t" + string(row[0].Text)
			}
			out, places = append(out, text), append(places, rows.(source.Placed).Place())
		}
	}
	all, places := read(0)
	if len(all) != 2*len(cells) {
		t.Fatalf("%q", all)
	}
	for i, from := range places[:len(places)-1] {
		rest, ends := read(from)
		if strings.Join(rest, "|") != strings.Join(all[i+1:], "|") || ends[len(ends)-1] != places[len(places)-1] {
			t.Errorf("from row %d on: %q", i+1, rest)
		}
	}
	if n := len(h.api.Started()); n != 1 {
		t.Errorf("%d queries are paid for", n)
	}
	ticket := h.ticket("1", "")
	ticket.From = places[len(places)-1]
	_, err := h.Apart().Open(t.Context(), source.Query{SQL: "SELECT c0 FROM lake", Ticket: ticket})
	failuretest.Want(t, err, failure.SourceUnavailable) // there is nothing behind the end
}

func TestSeveralQueriesAreHeldAtNoVersion(t *testing.T) {
	v := newHeld(t).Apart()
	v.Apart()
	if v.Version() != "" || v.ByteOrder(`"id"`, source.Decimal) != `"id"` || v.Close() != nil {
		t.Errorf("%q %q", v.Version(), v.ByteOrder(`"id"`, source.Text))
	}
	if !athena.Capitals("Id") || athena.Capitals("id_2") {
		t.Error("capitals")
	}
	if r := athena.Range(0); r != nil {
		t.Errorf("an object, which may be empty, is asked for by %s", *r)
	}
	if r := athena.Range(7); aws.ToString(r) != "bytes=7-" {
		t.Error(aws.ToString(r))
	}
}

// A ticket's own time comes before the context's, and needs none.
func TestACallerLeavesAQueryAtItsTicketsTime(t *testing.T) {
	h := newHeld(t)
	h.answer.Takes = 20 * time.Minute
	for _, ctx := range []struct{ until, context time.Duration }{{time.Minute, 0}, {time.Minute, 5 * time.Minute}, {5 * time.Minute, time.Minute}} {
		ticket, began, with := h.ticket("1", ""), h.now, t.Context()
		ticket.Until = began.Add(ctx.until)
		if ctx.context > 0 {
			with = h.until(t, ctx.context)
		}
		_, err := h.ask(with, ticket)
		if took := h.now.Sub(began); !errors.Is(err, source.ErrRunning) || took >= time.Minute || took < 45*time.Second {
			t.Errorf("%+v: left after %s: %v", ctx, took, err)
		}
	}
}

func TestParametersInTheText(t *testing.T) {
	h := newHeld(t)
	h.Inline = true
	_, err := h.Open(t.Context(), source.Query{SQL: "SELECT n FROM t WHERE a = :a AND b = ':a' AND c < :b -- :a", Params: map[string]any{"a": "it's", "b": time.Unix(0, 0)}})
	if err != nil {
		t.Fatal(err)
	}
	if q := h.api.Started()[0]; q.SQL != "SELECT n FROM t WHERE a = 'it''s' AND b = ':a' AND c < TIMESTAMP '1970-01-01 00:00:00.000000' -- :a" || len(q.Parameters) != 0 {
		t.Errorf("%q %q", q.SQL, q.Parameters)
	}
}
