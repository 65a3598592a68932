package demo

import (
	"strings"
	"testing"

	"almanac/localstack/internal/instance"
)

func TestDownSaysWhatALaterStartFinds(t *testing.T) {
	if got := down(instance.MiniStack); !strings.HasPrefix(got, "scripts/down ") || !strings.Contains(got, "goes on") {
		t.Error(got)
	}
	if got := down(instance.LocalStack); !strings.HasPrefix(got, "LOCAL_CLOUD=localstack scripts/down ") || !strings.Contains(got, "anew") {
		t.Error(got)
	}
}
