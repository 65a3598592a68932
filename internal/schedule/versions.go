package schedule

import "time"

// Diff lists the fields in which two definitions differ, one line each: name: before → after.
func Diff(before, after Definition) []string { return diff(before, after) }

// Access is one use of a recipient's link. It says when, what and whose link; neither address nor program of who used it
// is kept: mail scanners and forwarded mails make both a poor witness, and they would be personal data of people who
// agreed to nothing.
type Access struct {
	Run           string
	Channel       string
	RecipientHash string
	At            time.Time // wall time
	What          string    // "download" or "unsubscribe"
}
