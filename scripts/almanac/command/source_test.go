package command

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/api"
	"almanac/internal/failure"
	"almanac/internal/source"
)

const database = `kind: source
name: orders
engine: postgres
workspaces: [EWR]
postgres:
  host: orders.example.com
  database: orders
  secret: arn:aws:secretsmanager:eu-central-1:111122223333:secret:orders-AbCdEf
  search_path: [reporting]
`

func TestSourceTest(t *testing.T) {
	s := ready(t, "admin")
	s.write("all.yaml", configuration+"---\n"+database)
	s.run(Done, "apply", "-f", s.path("all.yaml"), "--yes")
	out, _ := s.run(Done, "get", "sources")
	has(t, out, "orders   postgres  orders.example.com:5432/orders  EWR", "WHERE")
	out, _ = s.run(Done, "apply", "-f", s.path("all.yaml"), "--yes")
	has(t, out, "0 to create, 0 to edit")

	hostile := "a\x1b[2J"
	s.product.Report = source.Report{Columns: []source.Column{{Name: "n"}, {Name: "note"}}, Rows: [][]*string{{&hostile, nil}}}
	s.product.Report.Add("network", 12*time.Millisecond, "orders.example.com:5432 answers", nil)
	out, _ = s.run(Done, "source", "test", "orders", "--query", "select 1")
	has(t, out, "network  ok       12 ms  orders.example.com:5432 answers", "NULL", "note")
	if strings.Contains(out, "\x1b") || !slices.Equal(s.product.Tested, []string{"orders: select 1"}) {
		t.Errorf("%q, asked %q", out, s.product.Tested)
	}
	s.product.Report.Rows = nil
	s.product.Report.Add("TLS", 0, "", failure.New(failure.SourceUnavailable, "the certificate is for another host"))
	out, _ = s.run(Refused, "source", "test", "orders")
	has(t, out, "TLS      source_unavailable  0 ms   the certificate is for another host", "(no rows)")
	out, _ = s.run(Refused, "source", "test", "orders", "-o", "json")
	var v api.SourceTest
	if err := json.Unmarshal([]byte(out), &v); err != nil || v.OK || len(v.Steps) != 2 || v.Steps[1].Code != "source_unavailable" {
		t.Errorf("%v %s", err, out)
	}
	_, errText := s.run(Refused, "source", "test", "nothing")
	has(t, errText, "404", "there is no source")
	for _, args := range [][]string{{"source", "try", "orders"}, {"source", "test"}, {"source"}} {
		_, errText := s.run(Usage, args...)
		has(t, errText, "usage: almanac source")
	}
}

func TestAWrongDatabaseIsNamedByFileAndLine(t *testing.T) {
	s := ready(t, "admin")
	for text, says := range map[string]string{
		strings.Replace(database, "orders.example.com", "/tmp/socket", 1):     `all.yaml:6: postgres.host is "/tmp/socket"`,
		strings.Replace(database, "  secret:", "  password: x\n  secret:", 1): "password",
		strings.Replace(database, "[reporting]", "reporting", 1):              "search_path",
	} {
		s.write("all.yaml", text)
		_, errText := s.run(Usage, "apply", "-f", s.path("all.yaml"), "--yes")
		has(t, errText, says)
	}
}
