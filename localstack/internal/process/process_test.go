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
	case "emulator": // starts a function in a process group of its own, as emulators do, and a process that is no function
		for _, name := range []string{"AWS_LAMBDA_RUNTIME_API=127.0.0.1:1", "OTHER=1"} {
			child := exec.Command(os.Args[0])
			child.Env = []string{"CHILD=grandchild", name}
			child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if err := child.Start(); err != nil {
				os.Exit(2)
			}
			fmt.Println("grandchild", child.Process.Pid)
		}
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

// functionAndOther gives the two children of an "emulator".
func functionAndOther(t *testing.T, r Record) (function, other int) {
	t.Helper()
	var pids []int
	for line := range strings.Lines(Tail(r.Log, 5)) {
		if number, ok := strings.CutPrefix(strings.TrimSpace(line), "grandchild "); ok {
			pid, err := strconv.Atoi(number)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { syscall.Kill(pid, syscall.SIGKILL) })
			pids = append(pids, pid)
		}
	}
	if len(pids) != 2 {
		t.Fatalf("children %v, want two", pids)
	}
	return pids[0], pids[1]
}

func gone(pid int) bool { _, err := startTime(pid); return err != nil }

func TestStopEndsProcessesInGroupsOfTheirOwn(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the system does not tell sessions; functions end by themselves there")
	}
	r, path := start(t, "emulator")
	function, other := functionAndOther(t, r)
	if _, err := Stop(context.Background(), path, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return gone(function) && gone(other) })
}

func TestSweepEndsOnlyTheFunctionsOfAnEmulatorThatDied(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the system does not tell sessions; functions end by themselves there")
	}
	r, path := start(t, "emulator")
	function, other := functionAndOther(t, r)
	if err := Sweep(path); err != nil || gone(function) {
		t.Fatalf("of an emulator that lives: %v, function gone %t", err, gone(function))
	}
	if err := syscall.Kill(r.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return !r.Alive() })
	if err := Sweep(path); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return gone(function) })
	if gone(other) {
		t.Error("a process that is no function was ended")
	}
}

func TestSessionOf(t *testing.T) {
	pid, session, ok := sessionOf("4242 (a (strange) name) S 1 4240 4200 0 -1 4194560")
	if !ok || pid != 4242 || session != 4200 {
		t.Errorf("%d, %d, %t", pid, session, ok)
	}
	for _, broken := range []string{"", "1 (x", "x (y) S 1 2 3", "1 (y) S 1"} {
		if _, _, ok := sessionOf(broken); ok {
			t.Errorf("%q counts as a line", broken)
		}
	}
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
