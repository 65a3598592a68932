//go:build cloud

package probes

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

// logged gives the log of a function as one text.
func logged(t *testing.T, function string) string {
	t.Helper()
	var out struct {
		Events []struct{ Message string }
	}
	err := raw().JSON(t.Context(), "logs", "Logs_20140328.FilterLogEvents", map[string]any{"logGroupName": "/aws/lambda/" + function}, &out)
	if codeOf(err) == "ResourceNotFoundException" {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range out.Events {
		all = append(all, e.Message)
	}
	return strings.Join(all, "\n")
}

func TestLogsHoldWhatAFunctionPrints(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	f := name(t, "")
	makeFunction(t, f, nil)
	if _, _, err := invoke(t, f, map[string]any{"do": "fail"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, func() (bool, string) {
		text := logged(t, f)
		return strings.Contains(text, "START RequestId") && strings.Contains(text, "told to fail") && strings.Contains(text, "REPORT RequestId"), text
	})
}

func TestLogsNeedNoPermission(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	f := name(t, "")
	role := makeRole(t, f+"-bare", nil)
	makeFunction(t, f, func(in *lambda.CreateFunctionInput) { in.Role = &role })
	// https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs.html: the role needs logs:PutLogEvents.
	if _, _, err := invoke(t, f, map[string]any{"do": "identity"}); err != nil {
		t.Fatal(err)
	}
	if written, saw := happens(20*time.Second, func() (bool, string) {
		text := logged(t, f)
		return strings.Contains(text, "REPORT RequestId"), fmt.Sprintf("log %q", text)
	}); !written {
		like(t, "%s", saw)
	}
}
