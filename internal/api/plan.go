package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"almanac/internal/api/routes"
	"almanac/internal/schedule"
)

type planBody struct {
	Definitions []json.RawMessage `json:"definitions"`
}

// maxPlan is how many definitions one plan may hold.
const maxPlan = 100

// PlanView is what applying definitions would do, in their order.
type PlanView struct {
	Changes []ChangeView `json:"changes"`
}

func (s *server) plan(ctx context.Context, in *Raw) (*reply[PlanView], error) {
	var body planBody
	if err := decode(in.RawBody, &body); err != nil {
		return nil, err
	}
	if n := len(body.Definitions); n == 0 || n > maxPlan {
		return nil, wrong("definitions", fmt.Sprintf("%d entries", n), fmt.Sprintf("1 to %d definitions", maxPlan))
	}
	out := &reply[PlanView]{}
	var problems schedule.Problems
	seen := map[string]int{}
	for i, text := range body.Definitions {
		change, err := s.planOne(ctx, text)
		var p schedule.Problems
		if errors.As(err, &p) {
			problems = append(problems, below(fmt.Sprintf("definitions[%d]", i), p)...)
			continue
		} else if err != nil {
			return nil, err
		}
		if first, twice := seen[change.ID]; twice {
			problems = append(problems, schedule.Problem{Field: fmt.Sprintf("definitions[%d].id", i), Value: change.ID,
				Want: fmt.Sprintf("an id that is used once; definitions[%d] has it too", first)})
		}
		seen[change.ID] = i
		out.Body.Changes = append(out.Body.Changes, changeView(change))
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return out, nil
}

func (s *server) planOne(ctx context.Context, text []byte) (schedule.Change, error) {
	def, err := schedule.ParseDefinition(text)
	if err != nil {
		return schedule.Change{}, err
	}
	if caller(ctx).In(def.Workspace) < routes.Viewer {
		return schedule.Change{}, wrong("workspace", def.Workspace, "a workspace that you may see")
	}
	row, err := s.Reader.Schedule(ctx, def.ID)
	if err == nil && caller(ctx).In(row.Workspace) < routes.Viewer {
		return schedule.Change{}, wrong("id", def.ID, "an id that is free, or of a schedule that you may see")
	} else if err != nil && !errors.Is(err, schedule.ErrNotFound) {
		return schedule.Change{}, err
	}
	change, err := s.Editor.Plan(ctx, def)
	var conflict *schedule.Conflict
	if errors.As(err, &conflict) {
		return change, wrong("id", def.ID, conflict.Why)
	}
	if caller(ctx).In(def.Workspace) < routes.Operator {
		change.Diff = withoutAddresses(change.Diff)
	}
	return change, err
}

// withoutAddresses hides what a viewer is not shown elsewhere: a plan compares with the addresses that stand.
func withoutAddresses(diff []string) []string {
	out := make([]string, len(diff))
	for i, line := range diff {
		name, _, _ := strings.Cut(line, ": ")
		if name == "recipients" || strings.HasPrefix(name, "recipients[") {
			line = name + ": differs (operators are shown how)"
		}
		out[i] = line
	}
	return out
}

// below puts the fields of a definition under a path; what is wrong of the definition as a whole is wrong at the path.
func below(path string, problems schedule.Problems) schedule.Problems {
	out := make(schedule.Problems, len(problems))
	for i, p := range problems {
		if p.Field = path + "." + p.Field; problems[i].Field == "definition" {
			p.Field = path
		}
		out[i] = p
	}
	return out
}
