package channel

import "time"

// FeedbackKind is what a mail service may say of a mail after it has accepted it.
type FeedbackKind string

const (
	Bounced    FeedbackKind = "bounce"    // the receiver's server did not take it, or gave it back
	Complained FeedbackKind = "complaint" // the recipient, or the receiver's server for them, says that it was not wanted
	Rejected   FeedbackKind = "rejection" // the mail service itself did not send what it had accepted
)

// Types of a bounce.
const (
	Permanent    = "permanent"    // no mail will reach this address
	Transient    = "transient"    // this mail did not; another may
	Undetermined = "undetermined" // the service cannot tell
)

// Types of a complaint that accuse nobody: a report that a mail is no spam, and one that a server could not prove where a
// mail came from. https://www.iana.org/assignments/marf-parameters/marf-parameters.xhtml, "Feedback Report Type Values".
const (
	NotSpam     = "not-spam"
	AuthFailure = "auth-failure"
)

// Feedback is one such word. None of its texts holds an address.
type Feedback struct {
	Kind    FeedbackKind
	At      time.Time // when it happened, by the service's clock
	Type    string    // bounce: one of the types above; complaint: a type of RFC 5965, or empty
	Subtype string    // the service's own finer word, or empty
	Why     string    // what that means, for people; empty: not known
	Detail  string    // what the receiver's server said, cut
	Mail    string    // the service's id of the mail: a submission's ProviderID, unless that was sent more than once
}

// Suppresses reports whether nothing more may be sent to the address: it is none, or its owner does not want it.
func (f Feedback) Suppresses() bool {
	switch f.Kind {
	case Bounced:
		return f.Type == Permanent
	case Complained:
		return f.Type != NotSpam && f.Type != AuthFailure
	}
	return false
}

// MailEvent is feedback with what tells whose mail it is about. Nothing of that is proven: the mail's own headers say it.
type MailEvent struct {
	Feedback          // Kind is empty where the service says something else, which nobody asked for
	Key        string // of the Delivery that was sent, or empty
	Notice     string // id of the Notice that was sent, or empty
	Account    string // the account whose mail it was
	Recipients []string
}
