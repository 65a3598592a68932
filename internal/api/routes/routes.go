// Package routes is the table of the API's routes and the right that each demands. The API registers its handlers by
// it, the infrastructure makes the public ones public by it, and a test holds both against it.
package routes

// Right is what a caller must have.
type Right int

const (
	Public   Right = iota // no token: the token in the path is the right
	Viewer                // may read
	Operator              // may run, stop, pause, resume, take links back
	Admin                 // may define and delete
	Stage                 // as Admin in every workspace: what holds for the whole stage
	Local                 // as Stage, and only registered in the local profile
)

// Route is one operation.
type Route struct {
	Method string
	Path   string // net/http pattern without the method
	Right  Right
}

// Table lists every route.
var Table = []Route{
	{"GET", "/openapi.json", Viewer},
	{"GET", "/workspaces", Viewer},
	{"PUT", "/workspaces/{workspace}", Admin},
	{"GET", "/sources", Viewer},
	{"PUT", "/sources/{source}", Admin},
	{"POST", "/sources/{source}/test", Admin}, // reads first rows; changes nothing
	{"GET", "/groups", Viewer},
	{"GET", "/groups/{group}", Viewer},
	{"PUT", "/groups/{group}", Admin},
	{"POST", "/groups/{group}/plan", Viewer}, // what saving would do; changes nothing
	{"GET", "/groups/{group}/versions", Viewer},
	{"GET", "/groups/{group}/versions/{version}", Viewer},
	{"GET", "/groups/{group}/audits", Viewer},
	{"POST", "/schedules/plan", Viewer}, // what applying would do; changes nothing
	{"GET", "/schedules", Viewer},
	{"PUT", "/schedules/{schedule}", Admin},
	{"GET", "/schedules/{schedule}", Viewer},
	{"DELETE", "/schedules/{schedule}", Admin},
	{"POST", "/schedules/{schedule}/pause", Operator},
	{"POST", "/schedules/{schedule}/resume", Operator},
	{"POST", "/schedules/{schedule}/runs", Operator}, // run now
	{"GET", "/schedules/{schedule}/runs", Viewer},
	{"GET", "/schedules/{schedule}/skips", Viewer},
	{"GET", "/schedules/{schedule}/versions", Viewer},
	{"GET", "/schedules/{schedule}/versions/{version}", Viewer},
	{"GET", "/schedules/{schedule}/audits", Viewer},
	{"GET", "/runs/{run}", Viewer},
	{"GET", "/runs/{run}/recipients", Viewer},
	{"POST", "/runs/{run}/stop", Operator},
	{"POST", "/runs/{run}/links/revoke", Operator},
	{"POST", "/runs/{run}/recipients/{recipient}/resolve", Operator},
	{"POST", "/runs/{run}/recipients/{recipient}/resend", Operator},
	{"GET", "/runs/{run}/retry", Operator}, // whom a retry as new would send to
	{"POST", "/runs/{run}/retry", Operator},
	{"GET", "/runs/{run}/accesses", Operator},
	{"GET", "/runs/{run}/audits", Viewer},
	{"GET", "/control", Viewer}, // whoever waits for a run may know that nothing is sent
	{"PUT", "/control", Stage},
	{"GET", "/control/audits", Viewer},
	{"GET", "/suppressions", Stage},
	{"GET", "/suppressions/{channel}/{recipient}", Stage},
	{"POST", "/suppressions/{channel}/{recipient}/lift", Stage},
	{"GET", "/suppressions/{channel}/{recipient}/audits", Stage},
	{"GET", "/dead-letters", Stage},
	{"POST", "/dead-letters/{message}/redrive", Stage},
	{"GET", "/owners", Viewer},
	{"PUT", "/owners/{owner}", Stage}, // its caps are shared by its workspaces
	{"GET", "/owners/{owner}/audits", Viewer},
	{"GET", "/snapshots/definitions", Viewer},
	{"GET", "/snapshots/definitions/{scope}/{of}/{type}", Viewer},
	{"PUT", "/snapshots/definitions/{scope}/{of}/{type}", Admin},
	{"POST", "/snapshots/definitions/{scope}/{of}/{type}/plan", Viewer}, // what saving would do; changes nothing
	{"GET", "/snapshots/definitions/{scope}/{of}/{type}/versions", Viewer},
	{"GET", "/snapshots/definitions/{scope}/{of}/{type}/versions/{version}", Viewer},
	{"GET", "/snapshots/definitions/{scope}/{of}/{type}/audits", Viewer},
	{"GET", "/snapshots/grid", Viewer},
	{"POST", "/snapshots/plan", Operator},     // asks the planner to look now
	{"POST", "/snapshots/backfill", Operator}, // also as a dry run
	{"GET", "/snapshots/months/{workspace}/{type}", Viewer},
	{"GET", "/snapshots/months/{workspace}/{type}/{month}", Viewer},
	{"POST", "/snapshots/months/{workspace}/{type}/{month}/versions", Operator}, // rerun
	{"GET", "/snapshots/months/{workspace}/{type}/{month}/manifest", Viewer},
	{"GET", "/snapshots/months/{workspace}/{type}/{month}/compare", Viewer},
	{"GET", "/snapshots/runs/{snapshot}", Viewer},
	{"GET", "/snapshots/runs/{snapshot}/manifest", Viewer},
	{"GET", "/snapshots/runs/{snapshot}/chunks/{chunk}", Viewer},
	{"POST", "/snapshots/runs/{snapshot}/verify", Operator},
	{"POST", "/snapshots/runs/{snapshot}/cancel", Operator},
	{"POST", "/snapshots/runs/{snapshot}/retry-now", Operator},
	{"POST", "/snapshots/runs/{snapshot}/accept", Operator},
	{"POST", "/snapshots/runs/{snapshot}/roll-back", Operator},
	{"GET", "/snapshots/runs/{snapshot}/audits", Viewer},
	{"GET", "/files/{token}", Public},
	{"GET", "/unsubscribe/{token}", Public},
	{"POST", "/unsubscribe/{token}", Public},
	{"GET", "/clock", Local},
	{"PUT", "/clock", Local},
}
