package schedule

import (
	"context"
	"fmt"
	"time"

	"almanac/internal/channel"
	"almanac/internal/input"
)

// SuppressionLedger is what lifting a suppression asks of the store.
type SuppressionLedger interface {
	Suppression(ctx context.Context, channel, recipientHash string) (Suppression, error)
	// LiftSuppression lifts one as read, in one transaction with its audit; one that changed meanwhile is a Conflict.
	LiftSuppression(ctx context.Context, s Suppression, a Audit) error
}

// SuppressionSubject is what audits of a suppression are about. Its blank keeps it apart from every schedule's id.
func SuppressionSubject(channelName, recipientHash string) string {
	return "suppression " + channelName + "#" + recipientHash
}

// Lift lets an address, named by hash, be sent to again. What happened before does not suppress it again, what happens
// later does. Asking again changes nothing: the first act stands. An address that never was suppressed is ErrNotFound.
//
// The mail service may have a suppression list of its own, which this does not touch.
func (e *Editor) Lift(ctx context.Context, channelName, recipient, reason, by string) (Suppression, error) {
	if ps := needReason(reason); ps != nil {
		return Suppression{}, ps
	}
	if !hashForm.MatchString(recipient) {
		return Suppression{}, Problems{input.Wrong("recipient", fmt.Sprintf("%.60q", recipient), "the hash of a suppressed recipient, 32 hexadecimal digits as GET /suppressions shows it")}
	}
	if channelName != channel.Email && channelName != channel.Webhook {
		return Suppression{}, Problems{input.Wrong("channel", fmt.Sprintf("%.60q", channelName), `"email" or "webhook"`)}
	}
	a := e.audit(SuppressionSubject(channelName, recipient), by, "lift suppression", reason, "", "lifted")
	for try := 0; ; try++ {
		s, err := e.Ledger.Suppression(ctx, channelName, recipient)
		if err != nil || !s.Holds() {
			return s, err
		}
		a.Before = fmt.Sprintf("%s at %s, run %s", s.Reason, s.At.UTC().Format(time.RFC3339), s.Run)
		if err = e.Ledger.LiftSuppression(ctx, s, a); retry(ctx, err, try) {
			continue // another lifted it between read and write
		}
		s.Lift = Lift{by, reason, a.At}
		return s, err
	}
}
