package awsrules

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go"
)

// Rule is one of AWS's rules.
type Rule struct {
	ID     string // service/group/what, lower case with hyphens
	AWS    string // what AWS does
	Source string // the page of AWS that says so
	check  func(*check)
}

// The services, as the ids of their rules begin.
const (
	ServiceDynamoDB = "dynamodb"
	ServiceSQS      = "sqs"
	ServiceS3       = "s3"
	ServiceStates   = "states"
)

// Service is what the rule is about.
func (r Rule) Service() string {
	service, _, _ := strings.Cut(r.ID, "/")
	return service
}

// All gives every rule, in the order of services and groups.
func All() []Rule {
	var all []Rule
	for _, list := range [][]Rule{
		conditions(), refusals(), expressions(), updates(), transactions(), tokens(), limits(), numbers(), values(), keys(), reads(), pages(), indexes(), batches(), capacity(),
		visibility(), receipts(), redrive(), sends(), sendBatches(),
		objects(), preconditions(), ranges(), checksums(), multipart(), lists(),
		executionNames(), executions(),
	} {
		all = append(all, list...)
	}
	return all
}

// Of gives the rules of a service.
func Of(service string) (out []Rule) {
	for _, r := range All() {
		if r.Service() == service {
			out = append(out, r)
		}
	}
	return out
}

// Check asks a world that Prepare has made ready for one rule, and gives what is otherwise than AWS says: nothing where
// the rule is kept. What has to stand before the rule can be asked fails the test.
func (w *World) Check(t testing.TB, r Rule) []string {
	t.Helper()
	c := &check{TB: t, World: w, ctx: t.Context(), id: strings.ReplaceAll(r.ID, "/", "-")}
	r.check(c)
	return c.seen
}

// check is one rule being asked.
type check struct {
	testing.TB
	*World
	ctx  context.Context
	id   string // of the rule, for names that no other rule uses
	seen []string
}

// unlike notes that the cloud does otherwise than AWS.
func (c *check) unlike(format string, args ...any) {
	c.seen = append(c.seen, fmt.Sprintf(format, args...))
}

// ready fails the test if what the rule needs could not be made.
func (c *check) ready(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// done notes an error where AWS has none; false: there was one.
func (c *check) done(what string, err error) bool {
	c.Helper()
	if err != nil {
		c.unlike("%s: %v; want no error", what, err)
	}
	return err == nil
}

// statuses are the HTTP statuses of errors by their codes, as far as they are not 400: the writer of files goes by them.
// https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
var statuses = map[string]int{
	"NoSuchKey": http.StatusNotFound, "NotFound": http.StatusNotFound, "NoSuchBucket": http.StatusNotFound, "NoSuchUpload": http.StatusNotFound,
	"PreconditionFailed": http.StatusPreconditionFailed, "NotModified": http.StatusNotModified, "InvalidRange": http.StatusRequestedRangeNotSatisfiable,
}

// refused notes an answer other than an error of one of the codes, with its status; false: there was one.
func (c *check) refused(what string, err error, codes ...string) bool {
	c.Helper()
	got := codeOf(err)
	for _, code := range codes {
		if got != code && strings.TrimPrefix(got, "AWS.SimpleQueueService.") != code {
			continue
		}
		want, known := statuses[code]
		if !known {
			want = http.StatusBadRequest
		}
		var answered interface{ HTTPStatusCode() int }
		if errors.As(err, &answered) && answered.HTTPStatusCode() != want {
			c.unlike("%s: %s with the status %d; want %d", what, code, answered.HTTPStatusCode(), want)
			return false
		}
		return true
	}
	c.unlike("%s: %s; want %s", what, said(err), strings.Join(codes, " or "))
	return false
}

// as notes an error of another type than T.
func as[T error](c *check, what string, err error) (T, bool) {
	c.Helper()
	var typed T
	if !errors.As(err, &typed) {
		c.unlike("%s: %s; want %T", what, said(err), typed)
		return typed, false
	}
	return typed, true
}

func said(err error) string {
	if err == nil {
		return "it is taken"
	}
	return fmt.Sprintf("%.300s", err.Error())
}

// codeOf is an error's code as AWS names it; empty for none.
func codeOf(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// eventually asks again and again until look is content, and tells whether that came about within the given time of the
// world's clock.
func (c *check) eventually(within time.Duration, look func() bool) bool {
	c.Helper()
	for end := c.Now().Add(within); ; {
		if look() {
			return true
		}
		if c.Now().After(end) {
			return false
		}
		c.ready(c.Pass(c.ctx))
	}
}
