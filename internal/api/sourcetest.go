package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"almanac/internal/schedule"
	"almanac/internal/source"
)

// testTime bounds a test of a source, so that its answer comes within the ten seconds that an answer may take
// (design.md §6).
const testTime = 8 * time.Second

// maxTestQuery bounds the query of a test, in bytes.
const maxTestQuery = 64 << 10

func (s *server) registerSourceTest() {
	registerBody[testBody](s, s.operation("POST", "/sources/{source}/test", "test-source", "Say step by step whether a source can be used, and show first rows; changes nothing", 404, 422), false, s.testSource)
}

type testBody struct {
	Query string `json:"query,omitempty" doc:"the query whose first rows are wanted; without it, those of some table. It is given no parameters."`
}

// SourceTest is what a test found.
type SourceTest struct {
	Source  string       `json:"source"`
	OK      bool         `json:"ok" doc:"whether every step succeeded"`
	Steps   []SourceStep `json:"steps" doc:"in order, up to the first that failed"`
	Columns []string     `json:"columns,omitempty"`
	Rows    [][]*string  `json:"rows,omitempty" doc:"the first rows as text, long cells cut; null: NULL"`
}

// SourceStep is one step of a test.
type SourceStep struct {
	Step         string `json:"step" doc:"login, network, TLS, sign-in, rights or time; of a file: file, rights or time"`
	OK           bool   `json:"ok"`
	Milliseconds int64  `json:"milliseconds"`
	Says         string `json:"says" doc:"what was found, or what helps"`
	Code         string `json:"code,omitempty" doc:"the failure that a run would end with"`
}

func (s *server) testSource(ctx context.Context, in *struct {
	Raw
	Source string `path:"source"`
}) (*reply[SourceTest], error) {
	var body testBody
	if len(in.RawBody) > 0 {
		if err := decode(in.RawBody, &body); err != nil {
			return nil, err
		}
	}
	if n := len(body.Query); n > maxTestQuery {
		return nil, wrong("query", clip(body.Query), "at most 65536 bytes")
	}
	none := problem(http.StatusNotFound, "there is no source %q, or you may not see it", clip(in.Source))
	rows, err := s.Reader.Sources(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if row.Name != in.Source || len(sourceView(row, caller(ctx)).Workspaces) == 0 {
			continue
		}
		if err := administers(ctx, row.Workspaces); err != nil {
			return nil, err
		}
		timed, cancel := context.WithTimeout(ctx, testTime)
		defer cancel()
		report, err := s.Sources.Test(timed, row.Name, body.Query)
		if errors.Is(err, schedule.ErrNotFound) {
			return nil, none
		}
		return &reply[SourceTest]{sourceTest(row.Name, report)}, err
	}
	return nil, none
}

func sourceTest(name string, r source.Report) SourceTest {
	out := SourceTest{Source: name, OK: r.OK(), Steps: []SourceStep{}, Rows: r.Rows}
	for _, f := range r.Findings {
		out.Steps = append(out.Steps, SourceStep{f.Step, f.OK, f.Took.Milliseconds(), f.Says, string(f.Code)})
	}
	for _, c := range r.Columns {
		out.Columns = append(out.Columns, c.Name)
	}
	return out
}
