package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test binary is the program that is started: as a child it does what CHILD says.
func TestMain(m *testing.M) {
	switch os.Getenv("CHILD") {
	case "":
		os.Exit(m.Run())
	case "polite": // ends when asked
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM)
		fmt.Println("ready")
		<-asked
		fmt.Println("asked to end")
	case "stubborn": // leaves a child of its own and does not listen
		signal.Ignore(syscall.SIGTERM)
		child := exec.Command(os.Args[0])
		child.Env = []string{"CHILD=grandchild"}
		if err := child.Start(); err != nil {
			os.Exit(2)
		}
		fmt.Println("grandchild", child.Process.Pid)
		fmt.Println("ready")
		time.Sleep(time.Minute)
	case "grandchild":
		signal.Ignore(syscall.SIGTERM)
		time.Sleep(time.Minute)
	}
	os.Exit(0)
}

func start(t *testing.T, kind string) (Record, string) {
	t.Helper()
	folder := t.TempDir()
	path := filepath.Join(folder, "run", "child.json")
	r, err := Start(Program{Name: kind, Path: os.Args[0], Env: []string{"CHILD=" + kind}, Dir: folder, Log: filepath.Join(folder, "logs", "child.log"), Port: 4566}, path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Kill(-r.PID, syscall.SIGKILL) })
	waitFor(t, func() bool { return strings.Contains(Tail(r.Log, 5), "ready") })
	return r, path
}

func waitFor(t *testing.T, content func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !content() {
		if time.Now().After(deadline) {
			t.Fatal("not within ten seconds")
		}
		runtime.Gosched()
	}
}

func TestStopAsksAndWaits(t *testing.T) {
	r, path := start(t, "polite")
	if loaded, err := Load(path); err != nil || loaded != r || !loaded.Alive() {
		t.Fatalf("the record reads %+v, %v, alive %t; want %+v alive", loaded, err, loaded.Alive(), r)
	}
	outcome, err := Stop(context.Background(), path, 10*time.Second)
	if err != nil || outcome != Stopped || r.Alive() {
		t.Errorf("stopped: %v, %v, alive %t", outcome, err, r.Alive())
	}
	if !strings.Contains(Tail(r.Log, 5), "asked to end") {
		t.Errorf("the program was not asked: %s", Tail(r.Log, 5))
	}
	if _, err := Load(path); !errors.Is(err, ErrNotRunning) {
		t.Errorf("the record after the stop: %v, want ErrNotRunning", err)
	}
	if outcome, err := Stop(context.Background(), path, time.Second); err != nil || outcome != WasNotRunning {
		t.Errorf("a second stop: %v, %v, want WasNotRunning", outcome, err)
	}
}

func TestStopKillsTheWholeGroupOfOneThatDoesNotEnd(t *testing.T) {
	r, path := start(t, "stubborn")
	_, rest, _ := strings.Cut(Tail(r.Log, 5), "grandchild ")
	number, _, _ := strings.Cut(rest, "\n")
	grandchild, err := strconv.Atoi(strings.TrimSpace(number))
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := Stop(context.Background(), path, 200*time.Millisecond)
	if err != nil || outcome != Killed || r.Alive() {
		t.Errorf("stopped: %v, %v, alive %t, want killed", outcome, err, r.Alive())
	}
	waitFor(t, func() bool { _, err := startTime(grandchild); return err != nil })
}

func TestStopNeverTouchesAProcessWithARecycledID(t *testing.T) {
	r, path := start(t, "polite")
	old := r
	old.Started = "another boot/1"
	if err := old.Save(path); err != nil {
		t.Fatal(err)
	}
	if outcome, err := Stop(context.Background(), path, time.Second); err != nil || outcome != WasNotRunning {
		t.Errorf("stop by a stale record: %v, %v, want WasNotRunning", outcome, err)
	}
	if !r.Alive() {
		t.Error("the process that has the id now was ended")
	}
}

func TestLoadRefusesWhatIsNoRecord(t *testing.T) {
	for content, want := range map[string]string{
		"nonsense": "not a process record", `{"pid":-1,"started":"x"}`: "-1", `{"pid":0,"started":"x"}`: "0",
		`{"pid":1,"started":"x"}`: "process 1", `{"pid":4000000}`: `""`, `{"pid":"12"}`: "not a process record",
	} {
		path := filepath.Join(t.TempDir(), "r.json")
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want an error that names the file and %s", content, err, want)
		}
		if _, err := Stop(context.Background(), path, time.Second); err == nil {
			t.Errorf("%s: stopped without an error", content)
		}
	}
}

func TestStartOfAMissingProgram(t *testing.T) {
	folder := t.TempDir()
	_, err := Start(Program{Name: "nothing", Path: filepath.Join(folder, "nothing"), Log: filepath.Join(folder, "log")}, filepath.Join(folder, "r.json"))
	if err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("%v, want an error that names the program", err)
	}
}

func TestStartTimeOfNoProcess(t *testing.T) {
	if _, err := startTime(1 << 22); !errors.Is(err, ErrNotRunning) {
		t.Errorf("%v, want ErrNotRunning", err)
	}
	mine, err := startTime(os.Getpid())
	if again, err2 := startTime(os.Getpid()); err != nil || err2 != nil || mine == "" || mine != again {
		t.Errorf("our own start time reads %q and %q, %v", mine, again, err)
	}
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if got := Tail(path, 2); !strings.Contains(got, "no log") {
		t.Errorf("of a missing log: %s", got)
	}
	if err := os.WriteFile(path, []byte(strings.Repeat("filler\n", 20_000)+"one\ntwo\nthree\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := Tail(path, 2); got != "    two\n    three" {
		t.Errorf("%q, want the last two lines", got)
	}
}
