// Package instance knows where one local cloud keeps its things and on which ports it listens. Several can live side by
// side: the demo that scripts/up makes and the one that scripts/test makes for itself.
package instance

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Cloud names which emulator serves an instance: the value of LOCAL_CLOUD. Everything that differs between them is
// chosen by it, in package emulator and in the stack's typed profile.
type Cloud string

const (
	// MiniStack is the default: IAM enforced, HTTP API, Cognito, mail relay.
	MiniStack Cloud = "ministack"
	// LocalStack has no HTTP API, no Cognito and no IAM; its tables are kept by AWS's own DynamoDB Local.
	LocalStack Cloud = "localstack"
)

// ParseCloud reads the value of LOCAL_CLOUD; empty means MiniStack.
func ParseCloud(value string) (Cloud, error) {
	switch Cloud(value) {
	case "", MiniStack:
		return MiniStack, nil
	case LocalStack:
		return LocalStack, nil
	}
	return "", fmt.Errorf("LOCAL_CLOUD is %q; right are %q and %q", value, MiniStack, LocalStack)
}

// KeepsState reports whether the cloud's state outlives a clean stop.
func (c Cloud) KeepsState() bool { return c == MiniStack }

// Account and Region are those of every local cloud.
const (
	Account = "000000000000"
	Region  = "us-east-1"
)

// Instance is one local cloud on this machine.
type Instance struct {
	Name  string
	Cloud Cloud
	Root  string // the repository's folder
	Port  int    // the AWS API; what runs beside it listens on the ports that follow, see below
}

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}$`)

// usual ports. 4566 is what local AWS clouds are known by. The demos of both clouds have it, so that only one of them can
// run; the clouds of the tests have ports of their own.
var usual = map[Cloud]map[string]int{
	MiniStack:  {"demo": 4566, "test": 4666},
	LocalStack: {"demo-localstack": 4566, "test-localstack": 4766},
}

// DemoName is the name of the instance that is meant when none is named.
func (c Cloud) DemoName() string {
	if c == MiniStack {
		return "demo"
	}
	return "demo-" + string(c)
}

// The folders of what all instances share lie beside those of the instances.
var shared = []string{"venv", "localstack-venv", "dynamodb-local", "dynamodb", "bin", "demo-data", "stamps", "logs"}

// New makes an instance. Port zero means the usual one of that name.
func New(root, name string, cloud Cloud, port int) (Instance, error) {
	if !nameForm.MatchString(name) {
		return Instance{}, fmt.Errorf("instance name %q: right are up to 31 small letters, digits and dashes, a letter first", name)
	}
	if slices.Contains(shared, name) {
		return Instance{}, fmt.Errorf("instance name %q is the name of a folder that all instances share; choose another", name)
	}
	if port == 0 {
		port = usual[cloud][name]
	}
	if port < 1024 || port > 65535-ports {
		return Instance{}, fmt.Errorf("port %d of instance %q: right is 1024 to %d (%d ports in a row are used); of %s only %s have one by themselves",
			port, name, 65535-ports, ports, cloud, strings.Join(slices.Sorted(maps.Keys(usual[cloud])), " and "))
	}
	return Instance{Name: name, Cloud: cloud, Root: root, Port: port}, nil
}

// ports is how many ports in a row an instance may use.
const ports = 5

// Of reads which cloud an instance was made for. An instance that was never started is of none: ok is false.
func Of(root, name string) (cloud Cloud, ok bool, err error) {
	text, err := os.ReadFile(Instance{Root: root, Name: name}.cloudMark())
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	cloud, err = ParseCloud(strings.TrimSpace(string(text)))
	return cloud, err == nil, err
}

// Claim notes that the instance is of its cloud. One that another cloud has made is refused: its state, its outputs and
// its users would be those of the other.
func (i Instance) Claim() error {
	made, ok, err := Of(i.Root, i.Name)
	if err != nil {
		return err
	}
	if ok && made != i.Cloud {
		return fmt.Errorf("instance %q was made by %s, and LOCAL_CLOUD asks for %s; use another name (%q is the usual one), or remove it first: LOCAL_CLOUD=%s .local/bin/cloud stop -instance %s -wipe",
			i.Name, made, i.Cloud, i.Cloud.DemoName(), made, i.Name)
	}
	if ok {
		return nil
	}
	if err := os.MkdirAll(i.Folder(), 0o755); err != nil {
		return err
	}
	return os.WriteFile(i.cloudMark(), []byte(i.Cloud+"\n"), 0o644)
}

func (i Instance) cloudMark() string { return i.path("cloud") }

func (i Instance) SMTPPort() int    { return i.Port + 1 }
func (i Instance) WebhookPort() int { return i.Port + 2 }

// IssuerPort and DynamoDBPort are used by LocalStack alone.
func (i Instance) IssuerPort() int   { return i.Port + 3 }
func (i Instance) DynamoDBPort() int { return i.Port + 4 }

// Issuer is the address of the local issuer of tokens: their claim iss.
func (i Instance) Issuer() string { return fmt.Sprintf("http://127.0.0.1:%d", i.IssuerPort()) }

// Endpoint is the address of the AWS API.
func (i Instance) Endpoint() string { return fmt.Sprintf("http://127.0.0.1:%d", i.Port) }

// Local is the folder of everything that is made on this machine and not kept in the repository.
func (i Instance) Local() string { return filepath.Join(i.Root, ".local") }

// Folder is what belongs to this instance alone; wiping an instance removes it.
func (i Instance) Folder() string { return filepath.Join(i.Local(), i.Name) }

func (i Instance) path(parts ...string) string {
	return filepath.Join(append([]string{i.Folder()}, parts...)...)
}

func (i Instance) State() string           { return i.path("state") }
func (i Instance) Objects() string         { return i.path("objects") }
func (i Instance) Temp() string            { return i.path("tmp") }
func (i Instance) EmulatorLog() string     { return i.path("logs", "emulator.log") }
func (i Instance) EmulatorRecord() string  { return i.path("run", "emulator.json") }
func (i Instance) ReceiversLog() string    { return i.path("logs", "receivers.log") }
func (i Instance) ReceiversRecord() string { return i.path("run", "receivers.json") }
func (i Instance) IssuerLog() string       { return i.path("logs", "issuer.log") }
func (i Instance) IssuerRecord() string    { return i.path("run", "issuer.json") }
func (i Instance) IssuerKey() string       { return i.path("issuer-key.pem") }
func (i Instance) DynamoDBLog() string     { return i.path("logs", "dynamodb-local.log") }
func (i Instance) DynamoDBRecord() string  { return i.path("run", "dynamodb-local.json") }
func (i Instance) ReceiversFolder() string { return i.path("received") }
func (i Instance) WebhookSecret() string   { return i.path("webhook-secret") }
func (i Instance) Outputs() string         { return i.path("outputs.json") }
func (i Instance) Users() string           { return i.path("users.json") }
func (i Instance) CDKOut() string          { return i.path("cdk.out") }
func (i Instance) CDKLog() string          { return i.path("logs", "cdk.log") }
func (i Instance) EnvFile() string         { return i.path("env") }
func (i Instance) UncleanMark() string     { return i.path("run", "not-saved") }

// What all instances share.

// Venv is the Python environment of the instance's cloud.
func (i Instance) Venv() string {
	if i.Cloud == LocalStack {
		return filepath.Join(i.Local(), "localstack-venv")
	}
	return filepath.Join(i.Local(), "venv")
}
func (i Instance) Bin() string       { return filepath.Join(i.Local(), "bin") }
func (i Instance) DemoData() string  { return filepath.Join(i.Local(), "demo-data") }
func (i Instance) FlightsDB() string { return filepath.Join(i.DemoData(), "flights.sqlite") }

// WeatherDB is the demo's weather; IncompleteWeatherDB is the same with readings missing.
func (i Instance) WeatherDB() string { return filepath.Join(i.DemoData(), "weather.sqlite") }
func (i Instance) IncompleteWeatherDB() string {
	return filepath.Join(i.DemoData(), "weather-incomplete.sqlite")
}
func (i Instance) Stamps() string { return filepath.Join(i.Local(), "stamps") }

// AWSEnv is what a client of this instance needs; any credentials do, since these are the account's own.
func (i Instance) AWSEnv() []string {
	return []string{
		"AWS_ENDPOINT_URL=" + i.Endpoint(),
		"AWS_ACCESS_KEY_ID=test",
		"AWS_SECRET_ACCESS_KEY=test",
		"AWS_REGION=" + Region,
		"AWS_DEFAULT_REGION=" + Region,
		// Neither the person's own profile nor an instance role may ever be used by a local run.
		"AWS_CONFIG_FILE=/dev/null",
		"AWS_SHARED_CREDENTIALS_FILE=/dev/null",
		"AWS_EC2_METADATA_DISABLED=true",
	}
}
