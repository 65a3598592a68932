package snapshot

import (
	"time"

	"almanac/internal/calendar"
	"almanac/internal/input"
)

// Scope is whose months a definition is about: one workspace, or all workspaces of an owner. A workspace's own
// definition of a type goes before its owner's.
type Scope struct {
	Workspace string `json:"workspace,omitempty"`
	Owner     string `json:"owner,omitempty"`
}

// DefaultOwner is the owner of workspaces that name none.
const DefaultOwner = "default"

// Mode is how a month is generated.
type Mode string

const (
	Auto    Mode = "auto"    // single up to SingleRows counted rows, otherwise chunked; chosen at the first start and kept
	Single  Mode = "single"  // one invocation reads rows and control query in one source transaction
	Chunked Mode = "chunked" // chunks of ChunkRows rows in the order of the key, with a cursor
)

// FileFormat is how a month's files are written.
type FileFormat string

const (
	Parquet FileFormat = "parquet" // with types, zstd; the default
	CSV     FileFormat = "csv"     // with gzip
)

// Definition is one immutable version of a snapshot definition, as a person writes it. Runs name the version that they
// were planned under.
type Definition struct {
	Scope
	Type   string         `json:"type"` // at most MaxType characters: it is part of the job's name
	Name   string         `json:"name"`
	Source string         `json:"source"`
	Start  calendar.Month `json:"start"` // the first month
	Query  string         `json:"query"` // names :period_start and :period_end (UTC, RFC 3339) and :workspace
	Key    string         `json:"key"`   // the column that increases strictly from row to row
	// Control is a query of one row that is read apart from the rows: column "rows" must equal their number, each other
	// column the sum of the column of that name.
	Control string `json:"control"`
	Checks  Checks `json:"checks,omitzero"`
	Mode    Mode   `json:"mode,omitempty"`
	// Format is how the files are written; a definition that was saved before there was a choice has none, and means CSV.
	Format FileFormat `json:"format,omitempty"`
	// ChunkRows is how many rows a chunk holds; SingleRows up to how many rows auto chooses a single pass.
	ChunkRows  int64 `json:"chunk_rows,omitempty"`
	SingleRows int64 `json:"single_rows,omitempty"`
	// Watermark is a query of one row and one column: the instant (RFC 3339, UTC) up to which the source is complete. A
	// month is loading until it is past the month's end plus LoadDelay. Empty: complete at the month's end plus LoadDelay.
	Watermark string         `json:"watermark,omitempty"`
	LoadDelay input.Duration `json:"load_delay,omitzero"`
	Off       bool           `json:"off,omitempty"` // the type is switched off: open versions are cancelled, months skipped as policy
	// DueAfter is how long after its end a month is late when it is not published; default 3 days.
	DueAfter input.Duration   `json:"due_after,omitzero"`
	Limits   RunLimits        `json:"limits,omitzero"`
	Waived   []Waiver         `json:"waived,omitempty"` // months that are never late, each with its reason
	Params   input.Parameters `json:"parameters,omitempty"`
}

// Waiver takes a month off the lateness figures.
type Waiver struct {
	Month  calendar.Month `json:"month"`
	Reason string         `json:"reason"`
}

// RunLimits bound one month's rows and bytes and the time of one of its queries; zero means the source's default.
type RunLimits struct {
	Rows    int64          `json:"rows,omitempty"`
	Bytes   int64          `json:"bytes,omitempty"`
	Timeout input.Duration `json:"timeout,omitzero"`
}

// Checks are what validation demands besides the control query, the increasing key and the digests.
type Checks struct {
	NotNull []string `json:"not_null,omitempty"` // columns without NULL
	// Types of columns: integer, decimal, real, text, boolean, date, timestamp.
	Types map[string]string `json:"types,omitempty"`
	// DriftRows bounds by how many percent the number of rows may differ from the current version of the same month
	// (ByVersion) and from the current version of the month before (ByMonth); absent: no bound.
	DriftRows Drift `json:"drift_rows,omitzero"`
	// DriftSums bounds the sums of columns in the same way.
	DriftSums map[string]Drift `json:"drift_sums,omitempty"`
}

// Drift bounds a change in percent; nil: no bound.
type Drift struct {
	ByVersion *float64 `json:"previous_version,omitempty"`
	ByMonth   *float64 `json:"previous_month,omitempty"`
}

// Bounds of a definition and the defaults of its fields.
const (
	MaxType           = 20
	MaxQuery          = 20_000
	DefaultChunkRows  = 50_000
	DefaultSingleRows = 100_000
	DefaultDueAfter   = 72 * time.Hour
)

// Version is a definition with what the store knows about it.
type Version struct {
	Definition
	Number    int
	Hash      string // SHA-256 of the canonical JSON: equal definitions make no new version
	CreatedBy string
	CreatedAt time.Time
}
