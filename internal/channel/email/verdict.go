package email

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"almanac/internal/channel"
	"almanac/internal/channel/wire"
	"almanac/internal/failure"
)

// rule reads one kind of coded answer. The first rule whose codes hold the answer's, and whose pattern its text, wins.
type rule struct {
	codes   []string       // without "Exception" at the end; none: any code
	text    *regexp.Regexp // nil: any text
	outcome channel.Outcome
	reason  string       // of Refused
	code    failure.Code // of the others
	after   time.Duration
	say     string // for people; SES's own text is never shown or logged, since it names addresses
}

// throttled are the codes by which AWS asks for a slower pace, with whatever HTTP status.
var throttled = []string{"Throttling", "Throttled", "TooManyRequests", "RequestLimitExceeded", "RequestThrottled", "LimitExceeded", "SlowDown", "BandwidthLimitExceeded"}

// rules is the one place where SES's coded answers become verdicts. Sources:
// https://docs.aws.amazon.com/ses/latest/APIReference/API_SendRawEmail.html (errors),
// https://docs.aws.amazon.com/ses/latest/APIReference/CommonErrors.html,
// https://docs.aws.amazon.com/ses/latest/dg/troubleshoot-error-messages.html (texts of MessageRejected),
// https://docs.aws.amazon.com/ses/latest/dg/manage-sending-quotas-errors.html (texts of throttling; "wait up to 10 minutes").
// The texts of InvalidParameterValue are documented nowhere; they are as users report them, e.g. openstax/accounts#253,
// boto/boto3#4587, anymail/django-anymail#281.
//
// Only a verdict on the address refuses a recipient. The account's own refusals are verdicts on the run (lifecycles B).
// A rejection that we cannot read counts as one of the account: a run that fails is seen, recipients skipped in silence
// are not.
var rules = []rule{
	{codes: throttled, text: re(`daily .*quota`), outcome: channel.RunRefused, code: failure.SendThrottled, after: 15 * time.Minute, say: "the mail account's daily quota is used up"},
	{codes: throttled, outcome: channel.NotAccepted, code: failure.SendThrottled, say: "the mail account's sending rate is reached"},

	{codes: []string{"InvalidParameterValue"}, text: re(`address|domain|user ?name`), outcome: channel.Refused, reason: channel.ReasonInvalid, say: "SES does not take it for an address that mail can be sent to"},
	{codes: []string{"InvalidParameterValue", "ValidationError", "MissingParameter", "InvalidParameterCombination"}, outcome: channel.RunRefused, code: failure.ChannelMisconfig, say: "SES does not understand the request: check the sender's address and the configuration set"},

	{codes: []string{"MessageRejected"}, text: re(`not verified`), outcome: channel.RunRefused, code: failure.SenderRefused, say: "the sender's identity is not verified, or the account is in the sandbox and the recipient's is not: verify the identity or ask for production access"},
	{codes: []string{"MessageRejected"}, text: re(`blacklist|suppress`), outcome: channel.Refused, reason: channel.ReasonSuppressed, say: "SES has the address on its suppression list"},
	{codes: []string{"MessageRejected"}, text: re(`paused|disabled|shut ?down`), outcome: channel.RunRefused, code: failure.SenderRefused, say: "sending is paused for the mail account"},
	{codes: []string{"MessageRejected"}, outcome: channel.RunRefused, code: failure.SenderRefused, say: "SES rejected the message: see the account's SES console"},
	{codes: []string{"AccountSendingPaused", "ConfigurationSetSendingPaused"}, outcome: channel.RunRefused, code: failure.SenderRefused, say: "sending is paused for the mail account or its configuration set"},
	{codes: []string{"MailFromDomainNotVerified", "FromEmailAddressNotVerified"}, outcome: channel.RunRefused, code: failure.SenderRefused, say: "the sender's domain is not verified: complete its MX record or verify the identity"},
	{codes: []string{"ProductionAccessNotGranted"}, outcome: channel.RunRefused, code: failure.SenderRefused, say: "the mail account is in the sandbox: ask for production access"},

	{codes: []string{"ConfigurationSetDoesNotExist"}, outcome: channel.RunRefused, code: failure.ChannelMisconfig, say: "the SES configuration set does not exist: create it or configure another"},
	{codes: []string{"AccessDenied", "NotAuthorized", "OptInRequired", "InvalidClientTokenId", "UnrecognizedClient", "SignatureDoesNotMatch", "IncompleteSignature", "MissingAuthenticationToken"}, outcome: channel.RunRefused, code: failure.ChannelMisconfig, say: "the function may not send mail: give its role ses:SendRawEmail on the sender's identity"},

	// Whatever else SES answers with a code of its own and a status below 500 was not accepted, for example an expired
	// token or request, which the next attempt mends.
	{outcome: channel.NotAccepted, code: failure.SendFailed, say: "SES did not take the request"},
}

func re(pattern string) *regexp.Regexp { return regexp.MustCompile(`(?i)` + pattern) }

// judge reads an error of SendRawEmail. nothingLeft says that it is certain that no byte of the request left.
func judge(err error, nothingLeft bool) channel.Verdict {
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorCode() != "" && api.ErrorCode() != "UnknownError" {
		code := strings.TrimSuffix(api.ErrorCode(), "Exception")
		if serverSide(err, api) && !slices.Contains(throttled, code) {
			return lost("SES answered with a fault of its own (" + api.ErrorCode() + ")")
		}
		for _, r := range rules {
			if (r.codes == nil || slices.Contains(r.codes, code)) && (r.text == nil || r.text.MatchString(api.ErrorMessage())) {
				return r.verdict(api.ErrorCode())
			}
		}
	}
	if nothingLeft {
		return channel.Verdict{Outcome: channel.NotAccepted, Failure: failure.New(failure.SendFailed, "SES could not be asked: %s", wire.Words(err))}
	}
	return lost("the answer of SES was lost: " + wire.Words(err))
}

// serverSide: a status of 500 or more, or, where the answer shows no status, a code that SES calls its own fault.
func serverSide(err error, api smithy.APIError) bool {
	var answer *smithyhttp.ResponseError
	if errors.As(err, &answer) {
		return answer.HTTPStatusCode() >= 500
	}
	return api.ErrorFault() == smithy.FaultServer
}

func (r rule) verdict(code string) channel.Verdict {
	if r.outcome == channel.Refused {
		return channel.Verdict{Outcome: r.outcome, Reason: r.reason, Detail: r.say}
	}
	return channel.Verdict{Outcome: r.outcome, Failure: failure.New(r.code, "%s (SES: %s)", r.say, failure.Cut(code, 60)).After(r.after)}
}

func lost(say string) channel.Verdict {
	return channel.Verdict{Outcome: channel.Lost, Failure: failure.New(failure.SendFailed, "%s; it may or may not have been accepted", say)}
}
