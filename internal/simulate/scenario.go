package simulate

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"almanac/internal/schedule"
)

// Scenario is a way that the product's work can go. Drive brings it about and lets the world come to rest; whatever goes
// wrong on the way, every promise of promises_*.go must hold, and the world must come to rest.
type Scenario struct {
	Name  string
	Half  string // "delivery" or "months"
	Drive func(*World)
	// Ended, if set, says in a word how the world came to rest, such as a run's state and code.
	Ended func(*World) string
	// Want is that word where nothing goes wrong, Or what else it may be where one thing does.
	Want string
	Or   []string
}

// Scenarios are those of both halves.
func Scenarios() []Scenario { return append(deliveryScenarios(), monthScenarios()...) }

// ScenarioNamed finds one.
func ScenarioNamed(name string) (Scenario, error) {
	for _, s := range Scenarios() {
		if s.Name == name {
			return s, nil
		}
	}
	return Scenario{}, fmt.Errorf("scenario %q: there is none", name)
}

// Outcome is how one world ended.
type Outcome struct {
	Ended string
	Trace []string
	Calls int
}

// made takes a line of a trace apart: who made the call, its name and what it is about.
var made = regexp.MustCompile(`call \d+: (.+ \d+), its call \d+: (\S+) ?(\S*)`)

// Name is that of the n-th call.
func (o Outcome) Name(n int) string { return made.FindStringSubmatch(o.Trace[n-1])[2] }

// Play runs a scenario in a world of its own; arrange, if not nil, sets faults and choices before anything happens.
func (s Scenario) Play(t *testing.T, arrange func(*World)) (o Outcome, err error) {
	faulty := false
	err = Run(t, func(w *World) {
		defer func() { o.Trace, o.Calls = w.Trace, w.calls }()
		w.Company()
		if arrange != nil {
			arrange(w)
			faulty = true
		}
		s.Drive(w)
		w.Rest()
		if s.Ended == nil {
			return
		}
		o.Ended = strings.TrimSpace(s.Ended(w))
		if o.Ended == s.Want {
			return
		}
		for _, or := range s.Or {
			if faulty && or == o.Ended {
				return
			}
		}
		w.Failf("it ended as %q, want %q or one of %q\n%s", o.Ended, s.Want, s.Or, w.Dump())
	})
	return o, err
}

// Company is the workspace and the source that every scenario has.
func (w *World) Company() {
	t := w.Kit(nil)
	w.must(t.Store().PutWorkspace(background, schedule.Workspace{ID: "EWR", Name: "Newark", Zone: "America/New_York"}, t.audit("workspace")))
	w.must(t.Store().PutSource(background, schedule.SourceConfig{Name: "flights", Engine: "sqlite", Object: "flights.sqlite", Workspaces: []string{"*"}}, t.audit("source")))
}

func (t Kit) audit(subject string) schedule.Audit {
	return schedule.Audit{ID: t.k.token(), Subject: subject, At: t.k.Now(), Who: "ann", What: "save"}
}
