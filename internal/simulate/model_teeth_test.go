package simulate

import (
	"strings"
	"testing"
	"time"

	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// spoil changes the first row of a table whose sort key begins so, behind the product's back.
func spoil(w *World, table, sk string, change func(Row)) {
	for _, it := range w.DB.Items(table) {
		if !strings.HasPrefix(Text(it, schema.SK), sk) || strings.HasPrefix(sk, "P#") && Text(it, schema.Job)+Text(it, schema.State) == "" {
			continue
		}
		if change == nil {
			_, err := w.DB.DeleteItem(background, &dynamodb.DeleteItemInput{TableName: &table, Key: Row{schema.PK: it[schema.PK], schema.SK: it[schema.SK]}})
			w.must(err)
			return
		}
		change(it)
		_, err := w.DB.PutItem(background, &dynamodb.PutItemInput{TableName: &table, Item: it})
		w.must(err)
		return
	}
	w.Failf("no row %s to spoil", sk)
}

func setText(name, v string) func(Row) {
	return func(it Row) { it[name] = &types.AttributeValueMemberS{Value: v} }
}

func setNumber(name, v string) func(Row) {
	return func(it Row) { it[name] = &types.AttributeValueMemberN{Value: v} }
}

// A product that did otherwise than the model says is found at the next comparison, whatever it did.
func TestModelOfDeliveryTeeth(t *testing.T) {
	for name, c := range map[string]struct {
		wrong func(*World)
		found string // what the comparison tells
	}{
		"nothing":                   {func(*World) {}, ""},
		"a wrong streak":            {func(w *World) { spoil(w, Schedules, "STATE", setNumber(schema.Streak, "3")) }, "schedule s"},
		"a wrong next due time":     {func(w *World) { spoil(w, Schedules, "STATE", setText(schema.NextDueAt, "2041-01-01T00:00:00.000Z")) }, "schedule s"},
		"an attempt that costs two": {func(w *World) { spoil(w, Schedules, "RUN#", setNumber(schema.AttemptsLeft, "3")) }, "run s@"},
		"a run that is gone":        {func(w *World) { spoil(w, Schedules, "RUN#", nil) }, "run s@"},
		"a wrong outcome":           {func(w *World) { spoil(w, Schedules, "SUB#", setText(schema.State, "submitted")) }, "submission s@"},
		"a notice that is lost":     {func(w *World) { spoil(w, Schedules, "OUT#", nil) }, "outbox s@"},
		"a mail sent twice":         {func(w *World) { w.Mail.Kept = append(w.Mail.Kept, Letter{To: "a@example.com"}) }, "receiver of a@example.com"},
		"a request that was posted": {func(w *World) { w.Hooks.Posts = append(w.Hooks.Posts, Post{Key: "s/h", Taken: true}) }, "receiver of s/h"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Run(t, func(w *World) {
				p := newDeliveryPair(w)
				p.apply("s", aDefinition{catchUp: "latest", overlap: "allow", limit: 5, to: "ah", notify: true, hourly: true})
				for _, act := range []func(*deliveryPair, int, int) string{ // one run fails, and its notice waits
					func(p *deliveryPair, _, _ int) string { p.env.receivers["a"], p.env.receivers["n"] = 3, 1; return "" },
					(*deliveryPair).runNow, (*deliveryPair).deliverNext} {
					act(p, 0, 1)
					if err := p.compare(); err != nil {
						t.Fatal(err)
					}
				}
				c.wrong(w)
				found(t, p.compare(), c.found)
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestModelOfMonthsTeeth(t *testing.T) {
	for name, c := range map[string]struct {
		wrong func(*World)
		found string
	}{
		"nothing":                   {func(*World) {}, ""},
		"a failure that counts two": {func(w *World) { spoil(w, Snapshots, "P#2040-01#V#", setNumber(schema.Failures, "1")) }, "run EWR_delays"},
		"a cursor that moved":       {func(w *World) { spoil(w, Snapshots, "P#2040-01#V#", setNumber(schema.Cursor, "7")) }, "run EWR_delays"},
		"a pointer that moved":      {func(w *World) { spoil(w, Snapshots, "CURRENT#", setNumber(schema.Version, "2")) }, "pointer EWR"},
		"a slot that was not freed": {func(w *World) {
			spoil(w, Snapshots, "CAPS", func(it Row) {
				it[schema.Slots] = &types.AttributeValueMemberM{Value: Row{"x": &types.AttributeValueMemberBOOL{Value: true}}}
			})
		}, "owner default"},
		"a series that stands still": {func(w *World) { spoil(w, Snapshots, "SERIES", setText(schema.NextMonth, "2040-02")) }, "series EWR"},
		"a pointer that is gone":     {func(w *World) { spoil(w, Snapshots, "CURRENT#", nil) }, "pointer EWR"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Run(t, func(w *World) {
				p := newMonthPair(w)
				defer p.end()
				p.caps(3, 1)
				p.apply("EWR", aMonthly{start: "2040-01", mode: "chunked"})
				for _, act := range []func(*monthPair, int, int) string{(*monthPair).planNow, (*monthPair).dispatch, (*monthPair).runOut} {
					act(p, 0, 0)
					if err := p.compare(); err != nil {
						t.Fatal(err)
					}
				}
				c.wrong(w)
				found(t, p.compare(), c.found)
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A model that is weaker than the specification is found, too: the product refuses what it permits.
func TestModelTeethOnAWeakerModel(t *testing.T) {
	err := Run(t, func(w *World) {
		p := newDeliveryPair(w)
		p.apply("s", aDefinition{catchUp: "latest", overlap: "allow", limit: 5, to: "a", hourly: true})
		p.model.defs["s"][0].limit = 1 // it pauses one failure too early
		p.env.source = 3
		p.runNow(0, 1)
		p.deliverNext(0, 0)
		found(t, p.compare(), "") // a manual run pauses nothing
		time.Sleep(31 * time.Minute)
		p.model.now = at2ms(w.Now())
		p.tick(0, 0)
		p.deliverNext(0, 0)
		found(t, p.compare(), "schedule s")
	})
	if err != nil {
		t.Fatal(err)
	}
}

// found demands that a comparison tells of what was spoiled, and of nothing where nothing was.
func found(t *testing.T, err error, what string) {
	t.Helper()
	switch {
	case what == "" && err != nil:
		t.Errorf("nothing is wrong, and the comparison tells: %v", err)
	case what != "" && (err == nil || !strings.HasPrefix(err.Error(), what)):
		t.Errorf("the comparison tells %v, want %s", err, what)
	}
}
