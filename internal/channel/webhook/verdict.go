package webhook

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"almanac/internal/channel"
	"almanac/internal/channel/wire"
	"almanac/internal/failure"
)

// answered is the one place where a status becomes a verdict (design.md §5, lifecycles B).
func answered(status int, retryAfter string, now time.Time) channel.Verdict {
	refused := func(say string) channel.Verdict {
		return channel.Verdict{Outcome: channel.Refused, Reason: channel.ReasonRefused, Detail: fmt.Sprintf("the receiver answered %d%s", status, say)}
	}
	passing := func(o channel.Outcome, code failure.Code, say string) channel.Verdict {
		return channel.Verdict{Outcome: o, Failure: failure.New(code, "the receiver answered %d%s", status, say).After(wish(retryAfter, now))}
	}
	switch {
	case status >= 200 && status < 300:
		return channel.Verdict{Outcome: channel.Accepted}
	case status < 200 && status != http.StatusSwitchingProtocols: // no HTTP: what it means nobody can say
		return passing(channel.Lost, failure.SendFailed, ", which is no final status; it may or may not have taken the request")
	case status >= 300 && status < 400:
		return refused("; redirects are not followed: configure the final URL")
	case status == http.StatusGone:
		return refused(": it does not want any more deliveries at this URL")
	case status == http.StatusTooManyRequests:
		return passing(channel.NotAccepted, failure.SendThrottled, " and asks for a slower pace")
	case status == http.StatusServiceUnavailable:
		return passing(channel.NotAccepted, failure.SendFailed, " and takes nothing at the moment")
	case status == http.StatusTooEarly || status == http.StatusMisdirectedRequest:
		// Both say that the request was not worked on and may be repeated (RFC 8470, 5.2; RFC 9110, 15.5.20); each try
		// dials anew, which is what the latter asks for.
		return passing(channel.NotAccepted, failure.SendFailed, " and did not work on the request")
	case status == http.StatusRequestTimeout || status >= 500:
		return passing(channel.Lost, failure.SendFailed, "; it may or may not have taken the request")
	}
	return refused("")
}

// broken reads an exchange that ended without a status.
func broken(err error, nothingLeft bool) channel.Verdict {
	switch {
	case blocked(err):
		return channel.Verdict{Outcome: channel.Refused, Reason: channel.ReasonInvalid, Detail: "the URL leads to an address that is neither public nor in a configured private network"}
	case nothingLeft:
		return channel.Verdict{Outcome: channel.NotAccepted, Failure: failure.New(failure.SendFailed, "the receiver could not be reached: %s", wire.Words(err))}
	}
	return channel.Verdict{Outcome: channel.Lost, Failure: failure.New(failure.SendFailed, "the receiver's answer was lost: %s; it may or may not have taken the request", wire.Words(err))}
}

// wish reads Retry-After, seconds or an HTTP date (RFC 9110 10.2.3), between 0 and the cap; what cannot be read is 0.
func wish(header string, now time.Time) time.Duration {
	var d time.Duration
	if header != "" && strings.Trim(header, "0123456789") == "" {
		seconds, _ := strconv.ParseUint(header, 10, 32) // more than fit are as many as fit
		d = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(header); err == nil {
		d = at.Sub(now)
	}
	return max(0, min(d, maxRetryAfter))
}
