//go:build cloud

package probes

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
)

// A probe looks for one thing: that the cloud does as AWS does (asOnAWS), or that it does otherwise (divergence). What it
// sees is compared with the cell of its row for this cloud, since what differs on one cloud may be the same on another.

// observed is what the probes have seen so far, by their names.
var observed = struct {
	sync.Mutex
	unlike, like map[string][]string
}{unlike: map[string][]string{}, like: map[string][]string{}}

func probeName(t *testing.T) string {
	name, _, _ := strings.Cut(t.Name(), "/")
	return name
}

// unlike notes that the cloud does otherwise than AWS.
func unlike(t *testing.T, format string, args ...any) {
	t.Helper()
	observed.Lock()
	defer observed.Unlock()
	t.Logf(format, args...)
	observed.unlike[probeName(t)] = append(observed.unlike[probeName(t)], fmt.Sprintf(format, args...))
}

// like notes that the cloud does as AWS does, where a divergence was looked for.
func like(t *testing.T, format string, args ...any) {
	t.Helper()
	observed.Lock()
	defer observed.Unlock()
	t.Logf(format, args...)
	observed.like[probeName(t)] = append(observed.like[probeName(t)], fmt.Sprintf(format, args...))
}

// asOnAWS begins a probe that calls unlike where the cloud does otherwise than AWS. It gives false when there is nothing
// more to look at: the row does not apply to this cloud, or the service is absent, as its cell says.
func asOnAWS(t *testing.T) bool {
	t.Helper()
	return begin(t, func() (same bool, why string) {
		seen := observed.unlike[probeName(t)]
		return len(seen) == 0, strings.Join(seen, "; ")
	})
}

// divergence begins a probe that calls like where the cloud does as AWS does.
func divergence(t *testing.T) bool {
	t.Helper()
	return begin(t, func() (same bool, why string) {
		seen := observed.like[probeName(t)]
		return len(seen) > 0, strings.Join(seen, "; ")
	})
}

func begin(t *testing.T, sum func() (bool, string)) bool {
	t.Helper()
	text := cellOf(t, probeName(t))
	switch kind := kindOf(text); kind {
	case notApplicable:
		t.Logf("%s: %s", cloud, text)
		return false
	case absent:
		isAbsent(t, text)
		return false
	default:
		t.Cleanup(func() {
			if t.Failed() {
				return
			}
			observed.Lock()
			defer observed.Unlock()
			same, why := sum()
			if same != (kind == theSame) {
				t.Errorf("%s does as AWS does: %t (%s)\nits cell in localstack/DIVERGENCES.md says: %s\nlook at the row, and at what was done because of it", cloud, same, why, text)
			}
		})
		return true
	}
}

// cellOf gives the cell of a probe's row for this cloud.
func cellOf(t *testing.T, probe string) string {
	t.Helper()
	for _, r := range rows(t) {
		if r.probe == probe {
			return r.cells[cloud]
		}
	}
	t.Fatalf("localstack/DIVERGENCES.md has no row for %s", probe)
	return ""
}

// absences are how each cloud says that it does not have a service: the service's name as its cell gives it, and a call.
var absences = map[string]func(t *testing.T) error{
	"athena": func(t *testing.T) error {
		return raw().JSON(t.Context(), "athena", "AmazonAthena.ListWorkGroups", map[string]any{}, nil)
	},
	"cognito-idp": func(t *testing.T) error {
		return raw().JSON(t.Context(), "cognito-idp", "AWSCognitoIdentityProviderService.ListUserPools", map[string]any{"MaxResults": 1}, nil)
	},
	"apigatewayv2": func(t *testing.T) error {
		return raw().REST(t.Context(), "apigateway", http.MethodGet, "/v2/apis", nil, nil)
	},
	"sesv2": func(t *testing.T) error {
		return raw().REST(t.Context(), "ses", http.MethodGet, "/v2/email/account", nil, nil)
	},
}

// isAbsent asks the service that the cell names for something harmless: once it answers, the cell is wrong.
func isAbsent(t *testing.T, cell string) {
	t.Helper()
	_, rest, _ := strings.Cut(cell, "`")
	service, _, _ := strings.Cut(rest, "`")
	ask, known := absences[service]
	if !known {
		t.Fatalf("the cell %q names no service that this test knows to ask", cell)
	}
	if err := ask(t); err == nil {
		t.Errorf("%s has %s now; its cell in localstack/DIVERGENCES.md says: %s", cloud, service, cell)
	} else {
		t.Logf("%s: %v", service, err)
	}
}

// cloud is which one answers, as LOCAL_CLOUD names it, or dynamodb-local.
var cloud = os.Getenv("ALMANAC_CLOUD")
