package artifact

import "time"

// Origin is where a file's rows come from, for the kinds that show it. All of it may be left out.
type Origin struct {
	Zone      *time.Location // in which times are shown; UTC if nil
	Name      string         // the schedule's
	Schedule  string         // its id
	Workspace string
	Source    string
	Run       string    // the run's id
	Nominal   time.Time // when the run was due
	DataAsOf  time.Time // when the rows were read
}
