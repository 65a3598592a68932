package api

import (
	"net/url"
	"strings"
	"time"

	"almanac/internal/api/routes"
	"almanac/internal/calendar"
	"almanac/internal/channel"
	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/source"
)

// Due is one due time of a preview.
type Due struct {
	At      time.Time `json:"at"`
	Local   string    `json:"local"`
	Note    string    `json:"note,omitempty"`
	Skipped bool      `json:"skipped,omitempty"`
}

func dues(entries []calendar.Entry) []Due {
	list := make([]Due, 0, len(entries))
	for _, e := range entries {
		list = append(list, Due{e.At, e.Local, e.Note, e.Skipped})
	}
	return list
}

// ChangeView is what applying a definition does, or would do.
type ChangeView struct {
	ID      string   `json:"id"`
	Action  string   `json:"action" enum:"create,edit,unchanged"`
	Version int      `json:"version"`
	Diff    []string `json:"diff"`
	NextDue []Due    `json:"next_due_times"`

	Groups []GroupCount `json:"groups,omitempty" doc:"groups that a schedule names, as they stand now"`
}

// GroupCount says how many members a group has now.
type GroupCount struct {
	ID      string `json:"id"`
	Version int    `json:"version"`
	Members int    `json:"members" doc:"distinct recipients"`
}

func changeView(c schedule.Change) ChangeView {
	v := ChangeView{ID: c.ID, Action: c.Action, Version: c.Version, Diff: orEmpty(c.Diff), NextDue: dues(c.NextDue)}
	for _, h := range c.Groups {
		v.Groups = append(v.Groups, GroupCount{h.ID, h.Version, h.Members})
	}
	return v
}

// LastRunView is the latest settled run of a schedule.
type LastRunView struct {
	Run     string    `json:"run"`
	State   string    `json:"state"`
	Code    string    `json:"code,omitempty"`
	Nominal time.Time `json:"nominal"`
}

// PauseView says why nothing is admitted.
type PauseView struct {
	Reason string     `json:"reason"`
	By     string     `json:"by,omitempty"`
	At     *time.Time `json:"at,omitempty"`
}

// ScheduleView is a schedule as lists show it.
type ScheduleView struct {
	ID          string       `json:"id"`
	Workspace   string       `json:"workspace"`
	Name        string       `json:"name"`
	State       string       `json:"state" enum:"active,paused,deleted"`
	Version     int          `json:"version"`
	NextDue     *time.Time   `json:"next_due,omitempty"`
	LastNominal *time.Time   `json:"last_nominal,omitempty"`
	LastSuccess *time.Time   `json:"last_success,omitempty"`
	LastRun     *LastRunView `json:"last_run,omitempty"`
	OpenRun     string       `json:"open_run,omitempty"`
	Streak      int          `json:"streak"`
	Pause       *PauseView   `json:"pause,omitempty"`
	CreatedAt   *time.Time   `json:"created_at,omitempty"`
}

func scheduleView(s schedule.Schedule) ScheduleView {
	v := ScheduleView{
		ID: s.ID, Workspace: s.Workspace, Name: s.Name, State: string(s.State), Version: s.Version, Streak: s.Streak,
		NextDue: instant(s.NextDue), LastNominal: instant(s.LastNominal), LastSuccess: instant(s.LastSuccess), CreatedAt: instant(s.CreatedAt),
	}
	if s.LastRun != "" {
		v.LastRun = &LastRunView{schema.RunID(s.ID, s.LastRun), string(s.LastRunState), s.LastRunCode, s.LastRunNominal}
	}
	if s.OpenRun != "" {
		v.OpenRun = schema.RunID(s.ID, s.OpenRun)
	}
	if s.State == schedule.Paused {
		v.Pause = &PauseView{s.PauseReason, s.PausedBy, instant(s.PausedAt)}
	}
	return v
}

// ScheduleDetail is one schedule with its definition and what comes next.
type ScheduleDetail struct {
	ScheduleView
	DefinedBy    string              `json:"defined_by,omitempty"`
	DefinedAt    *time.Time          `json:"defined_at,omitempty"`
	Definition   schedule.Definition `json:"definition"`
	NextDueTimes []Due               `json:"next_due_times"`
}

// FileView is the one file of a run.
type FileView struct {
	Name    string     `json:"name"`
	Rows    int64      `json:"rows"`
	Bytes   int64      `json:"bytes"`
	SHA256  string     `json:"sha256"`
	AsOf    *time.Time `json:"as_of,omitempty"`
	Expires *time.Time `json:"expires,omitempty"`
	Links   *time.Time `json:"links_expire,omitempty" doc:"when download links end by themselves"`
}

// ErrorView is a failure with what it means and what helps.
type ErrorView struct {
	Code    string `json:"code"`
	Meaning string `json:"meaning"`
	Remedy  string `json:"remedy"`
	Message string `json:"message"`
}

// RunView is a run as lists show it.
type RunView struct {
	ID           string         `json:"id"`
	Schedule     string         `json:"schedule"`
	Workspace    string         `json:"workspace"`
	Nominal      time.Time      `json:"nominal"`
	Manual       bool           `json:"manual"`
	RequestedBy  string         `json:"requested_by,omitempty"`
	RetryOf      string         `json:"retry_of,omitempty" doc:"the run that this one repeats"`
	Version      int            `json:"version"`
	Groups       map[string]int `json:"groups,omitempty" doc:"versions of the schedule's groups when the run was admitted: their members are who it is sent to"`
	State        string         `json:"state" enum:"queued,running,succeeded,skipped,failed"`
	Attempts     int            `json:"attempts"`
	AttemptsLeft int            `json:"attempts_left"`
	Yields       int            `json:"yields"`
	Submitted    int            `json:"submitted"`
	Skipped      int            `json:"skipped"`
	Query        *QueryView     `json:"query,omitempty" doc:"the latest query that went on without its caller"`
	File         *FileView      `json:"file,omitempty"`
	Error        *ErrorView     `json:"error,omitempty"`
	Stop         *StopView      `json:"stop,omitempty"`
	LinksRevoked *time.Time     `json:"links_revoked_at,omitempty" doc:"a person took back all links of the run"`
	CreatedAt    *time.Time     `json:"created_at,omitempty"`
	SettledAt    *time.Time     `json:"settled_at,omitempty"`
}

// QueryView is a run's query at an engine that goes on by itself (Athena), and what all queries of the run have cost.
type QueryView struct {
	ID      string  `json:"id" doc:"the engine's own"`
	Number  int     `json:"number" doc:"of the run's queries; another one is asked where one ended without a result"`
	Scanned int64   `json:"bytes_scanned" doc:"by all queries of the run that have ended"`
	CostUSD float64 `json:"cost_usd" doc:"at the engine's list price"`
}

func queryView(id string, number int, c source.Cost) *QueryView {
	return &QueryView{id, number, c.Scanned, float64(c.Micros) / 1e6}
}

func runView(r schedule.Run) RunView {
	v := RunView{
		ID: r.ID(), Schedule: r.Schedule, Workspace: r.Workspace, Nominal: r.Nominal, Manual: r.Manual, RequestedBy: r.RequestedBy, RetryOf: r.RetryOf,
		Version: r.Version, State: string(r.State), Attempts: r.Attempts, AttemptsLeft: r.AttemptsLeft, Yields: r.Yields,
		Submitted: r.Submitted, Skipped: r.SkippedN, CreatedAt: instant(r.CreatedAt), SettledAt: instant(r.SettledAt),
		LinksRevoked: instant(r.LinksRevoked), Groups: r.Groups,
	}
	if r.QueryID != "" {
		v.Query = queryView(r.QueryID, r.QueryNumber, r.QueryCost)
	}
	if f := r.File; f != nil {
		v.File = &FileView{f.Name, f.Rows, f.Bytes, f.SHA256, instant(f.DataAsOf), instant(r.FileExpires), instant(r.LinkExpires)}
	}
	if r.StopBy != "" {
		v.Stop = &StopView{r.StopBy, r.StopWhy}
	}
	if r.ErrorCode != "" {
		e, _ := failure.Lookup(failure.Code(r.ErrorCode))
		v.Error = &ErrorView{r.ErrorCode, e.Meaning, e.Remedy, r.ErrorText}
	}
	return v
}

// RecipientView is one recipient of a run and what became of its request.
type RecipientView struct {
	Channel     string         `json:"channel"`
	Recipient   string         `json:"recipient"`
	Hash        string         `json:"hash,omitempty" doc:"what names the recipient in requests and records; operators and above see it"`
	Outcome     string         `json:"outcome" enum:"pending,submitted,skipped,unknown,not_sent"`
	Reason      string         `json:"reason,omitempty"`
	Detail      string         `json:"detail,omitempty"`
	NotAccepted bool           `json:"not_accepted,omitempty" doc:"pending, and certain that no try was accepted so far"`
	Tries       int            `json:"tries"`
	Resends     int            `json:"resends,omitempty" doc:"how often a person had it sent again, each time under a new key"`
	Resend      *StopView      `json:"resend,omitempty" doc:"who asked that it be sent again, until that is carried out"`
	ProviderID  string         `json:"provider_id,omitempty"`
	Feedback    []FeedbackView `json:"feedback,omitempty" doc:"what the mail service said after it had accepted the mail; the outcome stays"`
	RevokedAt   *time.Time     `json:"link_revoked_at,omitempty" doc:"a person took back the download link"`
	UpdatedAt   *time.Time     `json:"updated_at,omitempty"`
}

// recipientView shows the address to whom may act on it; a viewer sees where it points only, and no hash, by which a
// guess could be proved.
func recipientView(s schedule.Submission, r schedule.Run, right routes.Right) RecipientView {
	v := RecipientView{
		Channel: s.Channel, Recipient: s.Recipient, Outcome: string(s.State), Reason: s.Reason, Detail: s.Detail,
		NotAccepted: s.NotAccepted, Tries: s.Tries, ProviderID: s.ProviderID, UpdatedAt: instant(s.UpdatedAt),
		Hash: s.RecipientHash, Resends: s.Resends,
	}
	for _, f := range s.Feedback {
		v.Feedback = append(v.Feedback, feedbackView(s, f))
	}
	if s.Wish.ID != "" && s.State == schedule.Unknown {
		v.Resend = &StopView{s.Wish.By, s.Wish.Why}
	}
	if s.Token != "" {
		v.RevokedAt = instant(s.RevokedAt)
		if v.RevokedAt == nil {
			v.RevokedAt = instant(r.LinksRevoked)
		}
	}
	if right < routes.Operator {
		v.Hash = ""
		v.Recipient = mask(s.Channel, s.Recipient)
	}
	return v
}

// FeedbackView is what the mail service said of a mail.
type FeedbackView struct {
	Kind    string     `json:"kind" enum:"bounce,complaint,rejection"`
	Type    string     `json:"type,omitempty" doc:"of a bounce: permanent, transient or undetermined; of a complaint: its type by RFC 5965"`
	Subtype string     `json:"subtype,omitempty" doc:"the mail service's own finer word"`
	Why     string     `json:"why,omitempty"`
	Detail  string     `json:"detail,omitempty" doc:"what the receiver's server said, without addresses"`
	At      *time.Time `json:"at" doc:"when it happened, by the mail service's clock"`
	Other   bool       `json:"other_mail,omitempty" doc:"not known to be about the mail of provider_id: it was sent more than once, or its answer was lost"`
}

func feedbackView(s schedule.Submission, f channel.Feedback) FeedbackView {
	return FeedbackView{string(f.Kind), f.Type, f.Subtype, f.Why, f.Detail, instant(f.At), f.Mail != s.ProviderID}
}

// mask leaves the first letter and the domain of an address, the host of a URL.
func mask(kind, recipient string) string {
	if kind == channel.Webhook {
		u, err := url.Parse(strings.TrimSpace(recipient))
		if err != nil || u.Host == "" {
			return "…"
		}
		return u.Scheme + "://" + u.Host + "/…"
	}
	local, domain, ok := strings.Cut(strings.TrimSpace(recipient), "@")
	if !ok || local == "" {
		return "…"
	}
	return local[:1] + "…@" + domain
}

// StopView says who asked the run to stop.
type StopView struct {
	By     string `json:"by"`
	Reason string `json:"reason"`
}

// RunDetail is one run with its recipients and its timeline.
type RunDetail struct {
	RunView
	RecipientSummary
	Offers      int      `json:"offers"`
	DeadLetters int      `json:"dead_letters"`
	History     string   `json:"history,omitempty"`
	Timeline    []string `json:"timeline"`
}

// SkipView is one contiguous range of occurrences that did not run.
type SkipView struct {
	First  time.Time `json:"first"`
	Last   time.Time `json:"last"`
	Count  int       `json:"count"`
	Reason string    `json:"reason"`
}

func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
