package snapshot

import (
	"context"
	"errors"
)

// ErrJobExists means that a job of this name is there already and has closed, or has another input.
var ErrJobExists = errors.New("an attempt job of this name exists already")

// Jobs are the attempt jobs: Standard executions of one workflow, named by Run.JobName. A name is never used for a second
// job: a second start while the first runs answers with the first, afterwards with ErrJobExists.
// Source: https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html ("StartExecution is
// idempotent for STANDARD workflows").
type Jobs interface {
	// Start starts a job and returns its execution. An error other than ErrJobExists leaves unknown whether it started.
	Start(ctx context.Context, name string, input Job) (execution string, err error)
	JobReader
	JobStopper
}

// JobReader looks at jobs.
type JobReader interface {
	Describe(ctx context.Context, name string) (JobStatus, error)
}

// JobStopper stops jobs. A job that has closed, or that there is none of, is no error.
type JobStopper interface {
	Stop(ctx context.Context, name, why string) error
}

// JobState is what an attempt job does.
type JobState string

const (
	JobRunning JobState = "running"
	JobClosed  JobState = "closed" // however it ended
	JobAbsent  JobState = "absent" // there is none of this name; one that was just started may not show yet
)

// JobStatus is a job as it stands.
type JobStatus struct {
	State     JobState
	Execution string
	Detail    string // how it closed, for people: SUCCEEDED, TIMED_OUT, ABORTED and so on, with the error's name
}

// Dispatch asks for the owners' dispatchers to run at once. It is asked after each settle, which has freed a slot. An ask
// that is lost does no harm: the tick comes every minute.
type Dispatch interface {
	Ask(ctx context.Context) error
}
