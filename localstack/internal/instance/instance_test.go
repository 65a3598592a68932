package instance

import (
	"slices"
	"strings"
	"testing"
)

func TestNew(t *testing.T) {
	demo, err := New("/repo", "demo", MiniStack, 0)
	if err != nil {
		t.Fatal(err)
	}
	test, err := New("/repo", "test", MiniStack, 0)
	if err != nil {
		t.Fatal(err)
	}
	ports := []int{demo.Port, demo.SMTPPort(), demo.WebhookPort(), test.Port, test.SMTPPort(), test.WebhookPort()}
	slices.Sort(ports)
	if len(slices.Compact(ports)) != 6 {
		t.Errorf("the ports of demo and test meet: %v", ports)
	}
	if demo.Folder() == test.Folder() || demo.Venv() != test.Venv() {
		t.Error("instances share what is theirs, or do not share what is everyone's")
	}
	if demo.Endpoint() != "http://127.0.0.1:4566" {
		t.Errorf("endpoint %s", demo.Endpoint())
	}
	// Wiping an instance must not remove what all share.
	for _, shared := range []string{demo.Venv(), demo.Bin(), demo.FlightsDB(), demo.Stamps()} {
		if strings.HasPrefix(shared, demo.Folder()+"/") {
			t.Errorf("%s lies in the instance's own folder", shared)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		port int
		want string
	}{
		{"", 0, `""`}, {"../etc", 0, `"../etc"`}, {"Demo", 0, `"Demo"`}, {strings.Repeat("a", 40), 0, "31"}, {"venv", 0, `"venv"`}, {"demo-data", 0, "demo-data"},
		{"other", 0, "port 0"}, {"demo", 80, "80"}, {"demo", 65534, "65534"}, {"demo", -1, "-1"}, {"a\nb", 0, `\n`},
	} {
		if _, err := New("/repo", c.name, MiniStack, c.port); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q, port %d: %v, want an error with %q", c.name, c.port, err, c.want)
		}
	}
}

func TestParseCloud(t *testing.T) {
	for value, want := range map[string]Cloud{"": MiniStack, "ministack": MiniStack} {
		if got, err := ParseCloud(value); err != nil || got != want {
			t.Errorf("%q: %v, %v", value, got, err)
		}
	}
	for _, value := range []string{"MiniStack", "aws", "localstack "} {
		if _, err := ParseCloud(value); err == nil || !strings.Contains(err.Error(), "LOCAL_CLOUD") || !strings.Contains(err.Error(), value) {
			t.Errorf("%q: %v, want an error that names LOCAL_CLOUD and the value", value, err)
		}
	}
}

func TestAWSEnvNeverUsesThePersonsOwnAccount(t *testing.T) {
	i, err := New("/repo", "test", MiniStack, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"AWS_ENDPOINT_URL=http://127.0.0.1:4666", "AWS_ACCESS_KEY_ID=test", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null"} {
		if !slices.Contains(i.AWSEnv(), want) {
			t.Errorf("%v lacks %s", i.AWSEnv(), want)
		}
	}
}
