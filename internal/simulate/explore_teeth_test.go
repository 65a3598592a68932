package simulate

import (
	"context"
	"strings"
	"testing"

	"almanac/internal/memcloud"
	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// weakened is a pair whose store sends a condition that always holds, for each write of a row that is meant.
func weakened(p Pair, meant func(key Row) bool) Pair {
	wide := func(key Row, condition **string) {
		if meant(key) && *condition != nil {
			text := "(" + **condition + ") OR attribute_not_exists(nobody_has_this)"
			*condition = &text
		}
	}
	began := p.New
	p.New = func(w *World) (a, b func() *Worker) {
		before := w.DB.Before
		w.DB.Before = func(ctx context.Context, c memcloud.Call) error {
			if workerOf(ctx) != nil {
				switch in := c.Input.(type) {
				case *dynamodb.PutItemInput:
					wide(in.Item, &in.ConditionExpression)
				case *dynamodb.UpdateItemInput:
					wide(in.Key, &in.ConditionExpression)
				case *dynamodb.TransactWriteItemsInput:
					for _, i := range in.TransactItems {
						if i.Put != nil {
							wide(i.Put.Item, &i.Put.ConditionExpression)
						}
						if i.Update != nil {
							wide(i.Update.Key, &i.Update.ConditionExpression)
						}
					}
				}
			}
			return before(ctx, c)
		}
		return began(w)
	}
	return p
}

// A condition that is left out is found by the pair that meets on it, and what is told shows it again.
func TestExplorerFindsALostCondition(t *testing.T) {
	of := func(kind string) func(Row) bool {
		return func(key Row) bool { return strings.HasPrefix(Text(key, schema.SK), kind) }
	}
	for _, x := range []struct {
		name, pair string
		meant      func(Row) bool
	}{
		{"the lease, the file and the settlement of a run", "deliver × deliver", of(schema.RunPrefix)},
		{"who sends", "deliver, lease over × deliver", of(schema.SubPrefix)},
		{"an occurrence", "tick × tick", func(key Row) bool { return of(schema.RunPrefix)(key) || Text(key, schema.SK) == "STATE" }},
		{"an owner's slots", "claim × claim, cap 1", of("CAPS")},
		// Version and head guard each other: no order tells that one of the two conditions is gone.
		{"a month's version and head, cancelled", "publish × cancel", of(schema.PeriodPrefix)},
		{"a month's pointer", "roll back × roll back", of(schema.CurrentPrefix)},
		{"a month's version and head, planned", "rerun × rerun", of(schema.PeriodPrefix)},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			p, err := PairNamed(x.pair)
			if err != nil {
				t.Fatal(err)
			}
			p = weakened(p, x.meant)
			f, err := p.Explore(t, 0, quickly)
			if err == nil {
				t.Fatalf("nothing was found in %d states and %d ends", len(f.States), len(f.Ends))
			}
			first, _, _ := strings.Cut(err.Error(), "\n")
			t.Logf("after %d worlds: %s", f.Orders, first)
			order, what, _ := strings.Cut(err.Error(), ": ")
			_, skew, path, bad := parseReplay(order)
			if bad != nil {
				t.Fatal(bad)
			}
			if _, again := p.Play(t, skew, path); again == nil || !strings.HasPrefix(what, strings.SplitN(again.Error(), "\n", 2)[0]) {
				t.Errorf("played again: %v, want %s", again, first)
			}
		})
	}
}
