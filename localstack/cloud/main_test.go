package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func getenv(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		args []string
		env  map[string]string
		name string
		port int
	}{
		{[]string{"up"}, nil, "demo", 4566},
		{[]string{"start", "-instance", "test"}, nil, "test", 4666},
		{[]string{"stop", "--instance", "test", "--wipe"}, nil, "test", 4666},
		{[]string{"up"}, map[string]string{"ALMANAC_PORT": "5566"}, "demo", 5566},
		{[]string{"up"}, map[string]string{"LOCAL_CLOUD": "localstack"}, "demo-localstack", 4566},
		{[]string{"start", "-instance", "test-localstack"}, map[string]string{"LOCAL_CLOUD": "localstack"}, "test-localstack", 4766},
		{[]string{"up", "-port", "6566"}, map[string]string{"ALMANAC_PORT": "5566", "LOCAL_CLOUD": "ministack"}, "demo", 6566},
	} {
		o, err := parse(c.args, getenv(c.env), "/repo")
		if err != nil || o.instance.Name != c.name || o.instance.Port != c.port {
			t.Errorf("%v %v: %+v, %v", c.args, c.env, o, err)
		}
		if o.wipe != (c.args[0] == "stop") {
			t.Errorf("%v: wipe is %t", c.args, o.wipe)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct {
		args []string
		env  map[string]string
		want []string
	}{
		{nil, nil, []string{"no command", "usage"}},
		{[]string{"-instance", "x"}, nil, []string{"no command"}},
		{[]string{"destroy"}, nil, []string{`"destroy"`, "usage"}},
		{[]string{"up", "now"}, nil, []string{`"now"`}},
		{[]string{"up", "-fast"}, nil, []string{"-fast"}},
		{[]string{"up", "-instance", "../x"}, nil, []string{"../x"}},
		{[]string{"up", "-instance", "other"}, nil, []string{"other", "port 0"}},
		{[]string{"up"}, map[string]string{"ALMANAC_PORT": "http"}, []string{"ALMANAC_PORT", `"http"`}},
		{[]string{"up"}, map[string]string{"ALMANAC_PORT": "99999"}, []string{"99999"}},
		{[]string{"up", "-instance", "test"}, map[string]string{"LOCAL_CLOUD": "localstack"}, []string{"test-localstack", "port 0"}},
		{[]string{"up", "-port", "80"}, nil, []string{"80", "1024"}},
		{[]string{"dynamodb"}, nil, []string{"start", "stop"}},
		{[]string{"dynamodb", "restart"}, nil, []string{"start", "stop"}},
		{[]string{"dynamodb", "start", "now"}, nil, []string{`"now"`}},
		{[]string{"dynamodb", "start", "-port", "x"}, nil, []string{`"x"`}},
		{[]string{"up"}, map[string]string{"LOCAL_CLOUD": "azure"}, []string{"LOCAL_CLOUD", "azure"}},
	} {
		_, err := parse(c.args, getenv(c.env), "/repo")
		for _, part := range c.want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%v %v: %v does not say %q", c.args, c.env, err, part)
			}
		}
	}
}

func TestUsageNamesEachCommand(t *testing.T) {
	for name := range commands {
		if !strings.Contains(usage, "\n  "+name+" ") {
			t.Errorf("the usage does not tell of %q", name)
		}
	}
}

func TestFindRoot(t *testing.T) {
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "localstack", "cloud", "main.go")); err != nil {
		t.Error(err)
	}
	t.Chdir(t.TempDir())
	if root, err := findRoot(); err == nil {
		t.Errorf("outside of a checkout it finds %s", root)
	}
}

func TestANamedInstanceTellsItsCloud(t *testing.T) {
	root := t.TempDir()
	made, err := parse([]string{"start", "-instance", "test-localstack"}, getenv(map[string]string{"LOCAL_CLOUD": "localstack"}), root)
	if err != nil {
		t.Fatal(err)
	}
	if err := made.instance.Claim(); err != nil {
		t.Fatal(err)
	}
	o, err := parse([]string{"stop", "-instance", "test-localstack"}, getenv(nil), root)
	if err != nil || o.instance.Cloud != "localstack" || o.instance.Port != 4766 {
		t.Errorf("%+v, %v", o.instance, err)
	}
}

func TestDynamoDBHasAPortOfItsOwn(t *testing.T) {
	o, err := parse([]string{"dynamodb", "start"}, getenv(map[string]string{"ALMANAC_PORT": "5566"}), "/repo")
	if err != nil || o.action != "start" || o.port != 0 {
		t.Errorf("%+v, %v: ALMANAC_PORT is the instances'", o, err)
	}
	if o, err = parse([]string{"dynamodb", "env", "-port", "5870"}, getenv(nil), "/repo"); err != nil || o.port != 5870 {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestWhileAliveEndsWhatIsDoneWhenTheEmulatorDies(t *testing.T) {
	o, err := parse([]string{"deploy"}, getenv(nil), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := cloud{options: o} // of an instance whose emulator does not live
	err = c.whileAlive(t.Context(), func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	for _, part := range []string{`"demo"`, "ended while it was used", "scripts/up"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %q", err, part)
		}
	}
	mine := errors.New("mine")
	if err := c.whileAlive(t.Context(), func(context.Context) error { return mine }); !errors.Is(err, mine) {
		t.Errorf("%v, want the work's own error", err)
	}
}
