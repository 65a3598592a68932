package instance

import (
	"os"
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
	second, err := New("/repo", "test-localstack", LocalStack, 0)
	if err != nil {
		t.Fatal(err)
	}
	if end := test.DynamoDBPort(); end >= second.Port {
		t.Errorf("the ports of the two test clouds meet: up to %d, from %d", end, second.Port)
	}
	if name := LocalStack.DemoName(); usual[LocalStack][name] != 4566 || usual[MiniStack][MiniStack.DemoName()] != 4566 {
		t.Errorf("the demos do not have the port that local clouds are known by")
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
		{"localstack-venv", 0, "localstack-venv"}, {"dynamodb-local", 0, "dynamodb-local"},
		{"other", 0, "port 0"}, {"test-localstack", 0, "ministack"}, {"demo", 80, "80"}, {"demo", 65531, "65531"}, {"demo", -1, "-1"}, {"a\nb", 0, `\n`},
	} {
		if _, err := New("/repo", c.name, MiniStack, c.port); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q, port %d: %v, want an error with %q", c.name, c.port, err, c.want)
		}
	}
}

func TestParseCloud(t *testing.T) {
	for value, want := range map[string]Cloud{"": MiniStack, "ministack": MiniStack, "localstack": LocalStack} {
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

func TestAnInstanceIsOfOneCloud(t *testing.T) {
	root := t.TempDir()
	one, err := New(root, "demo", MiniStack, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := Of(root, "demo"); ok || err != nil {
		t.Errorf("an instance that was never started: %t, %v", ok, err)
	}
	for range 2 {
		if err := one.Claim(); err != nil {
			t.Fatal(err)
		}
	}
	if cloud, ok, err := Of(root, "demo"); cloud != MiniStack || !ok || err != nil {
		t.Errorf("%s, %t, %v", cloud, ok, err)
	}
	other, err := New(root, "demo", LocalStack, 5566)
	if err != nil {
		t.Fatal(err)
	}
	err = other.Claim()
	for _, part := range []string{`"demo"`, "ministack", "localstack", "demo-localstack", "-wipe"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %s", err, part)
		}
	}
	if err := os.WriteFile(one.cloudMark(), []byte("azure"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Of(root, "demo"); err == nil || !strings.Contains(err.Error(), "azure") {
		t.Errorf("a mark of no known cloud: %v", err)
	}
}
