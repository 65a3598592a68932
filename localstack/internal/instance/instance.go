// Package instance knows where one local cloud keeps its things and on which ports it listens. Several can live side by
// side: the demo that scripts/up makes and the one that scripts/test makes for itself.
package instance

import (
	"fmt"
	"path/filepath"
	"regexp"
)

// Cloud names which emulator serves an instance: the value of LOCAL_CLOUD. Everything that differs between them is
// chosen by it, in package emulator and in the stack's typed profile.
type Cloud string

// MiniStack is the default: IAM enforced, HTTP API, Cognito, mail relay.
const MiniStack Cloud = "ministack"

// ParseCloud reads the value of LOCAL_CLOUD; empty means MiniStack.
func ParseCloud(value string) (Cloud, error) {
	switch value {
	case "", string(MiniStack):
		return MiniStack, nil
	}
	return "", fmt.Errorf("LOCAL_CLOUD is %q; right is %q", value, MiniStack)
}

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
	Port  int    // the AWS API; the mail receiver listens on Port+1, the webhook receiver on Port+2
}

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}$`)

// usual ports. 4566 is what local AWS clouds are known by.
var usual = map[string]int{"demo": 4566, "test": 4666}

// New makes an instance. Port zero means the usual one of that name.
func New(root, name string, cloud Cloud, port int) (Instance, error) {
	if !nameForm.MatchString(name) {
		return Instance{}, fmt.Errorf("instance name %q: right are up to 31 small letters, digits and dashes, a letter first", name)
	}
	// The folders of what all instances share lie beside those of the instances.
	for _, taken := range []string{"venv", "bin", "demo-data", "stamps"} {
		if name == taken {
			return Instance{}, fmt.Errorf("instance name %q is the name of a folder that all instances share; choose another", name)
		}
	}
	if port == 0 {
		port = usual[name]
	}
	if port < 1024 || port > 65533 {
		return Instance{}, fmt.Errorf("port %d of instance %q: right is 1024 to 65533 (three ports in a row are used); only %q and %q have one by themselves", port, name, "demo", "test")
	}
	return Instance{Name: name, Cloud: cloud, Root: root, Port: port}, nil
}

func (i Instance) SMTPPort() int    { return i.Port + 1 }
func (i Instance) WebhookPort() int { return i.Port + 2 }

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
func (i Instance) ReceiversFolder() string { return i.path("received") }
func (i Instance) WebhookSecret() string   { return i.path("webhook-secret") }
func (i Instance) Outputs() string         { return i.path("outputs.json") }
func (i Instance) Users() string           { return i.path("users.json") }
func (i Instance) CDKOut() string          { return i.path("cdk.out") }
func (i Instance) CDKLog() string          { return i.path("logs", "cdk.log") }
func (i Instance) EnvFile() string         { return i.path("env") }
func (i Instance) UncleanMark() string     { return i.path("run", "not-saved") }

// What all instances share.

func (i Instance) Venv() string      { return filepath.Join(i.Local(), "venv") }
func (i Instance) Bin() string       { return filepath.Join(i.Local(), "bin") }
func (i Instance) DemoData() string  { return filepath.Join(i.Local(), "demo-data") }
func (i Instance) FlightsDB() string { return filepath.Join(i.DemoData(), "flights.sqlite") }
func (i Instance) Stamps() string    { return filepath.Join(i.Local(), "stamps") }

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
