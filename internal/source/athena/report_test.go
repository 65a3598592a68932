package athena_test

import (
	"strings"
	"testing"

	"almanac/internal/failure"
	"almanac/internal/memcloud"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/athena/types"
)

func TestASourceIsTested(t *testing.T) {
	var asked []string
	tables := [][]*string{{one("delays")}, {one("flights")}}
	h := newHeld(t)
	h.Database = "o'hare"
	h.api.Engine = func(q memcloud.AthenaQuery) memcloud.AthenaAnswer {
		asked = append(asked, q.SQL)
		a := h.answer
		if strings.Contains(q.SQL, "information_schema") {
			a.Columns, a.Rows = []types.ColumnInfo{{Name: aws.String("table_name"), Type: aws.String("varchar")}}, tables
		}
		return a
	}
	r := h.Test(t.Context(), "")
	if !r.OK() || len(r.Findings) != 2 || r.Findings[0].Says != "has delays, flights" || len(r.Rows) != 1 || *r.Rows[0][0] != "42" {
		t.Fatalf("%+v", r)
	}
	if len(asked) != 2 || !strings.Contains(asked[0], "'o''hare'") || asked[1] != `SELECT * FROM "delays" LIMIT 5` {
		t.Fatalf("%q", asked)
	}
	if r = h.Test(t.Context(), "SELECT n FROM flights"); !r.OK() || len(asked) != 3 || asked[2] != "SELECT n FROM flights" {
		t.Fatalf("%+v %q", r, asked)
	}
	tables = nil
	if r = h.Test(t.Context(), ""); r.OK() || r.Findings[0].Code != failure.SourceUnknown || len(r.Findings) != 1 {
		t.Fatalf("%+v", r)
	}
}
