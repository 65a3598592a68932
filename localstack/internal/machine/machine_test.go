package machine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestAtLeast(t *testing.T) {
	for _, c := range []struct {
		have, least string
		want        bool
	}{
		{"20.20.2", "20", true}, {"3.10", "3.10", true}, {"3.9.18", "3.10", false}, {"3.11.7", "3.10", true}, {"1.26.8", "1.24", true}, {"9", "10", false}, {"20.0.0", "20", true},
	} {
		if got := AtLeast(c.have, c.least); got != c.want {
			t.Errorf("AtLeast(%s, %s) = %t", c.have, c.least, got)
		}
	}
}

func TestToolCheckSaysWhatIsMissingAndWhereToGetIt(t *testing.T) {
	tool := Tool{"node", []string{"--version"}, "20", "install Node from its site"}
	for name, c := range map[string]struct {
		out  string
		err  error
		want []string
	}{
		"right":      {"v20.20.2", nil, nil},
		"Java":       {"openjdk version \"21\" 2023-09-19\nOpenJDK Runtime Environment (build 21+35-2513)", nil, nil},
		"missing":    {"", exec.ErrNotFound, []string{`"node"`, "not on PATH", "install Node from its site"}},
		"too old":    {"v18.1.0", nil, []string{"18.1.0", "20", "install Node from its site"}},
		"broken":     {"segmentation fault", errors.New("exit status 139"), []string{"node --version", "exit status 139", "segmentation fault"}},
		"no version": {"hello", nil, []string{"hello", "no version"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := tool.Check(t.Context(), func(context.Context, string, ...string) (string, error) { return c.out, c.err })
			if (err == nil) != (c.want == nil) {
				t.Fatalf("%v", err)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%v does not say %q", err, part)
				}
			}
		})
	}
}

func TestRunToolOfAMissingProgram(t *testing.T) {
	if _, err := RunTool(t.Context(), "no-such-program-here"); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("%v, want exec.ErrNotFound", err)
	}
}

func TestPortFreeNamesWhoListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	err = PortFree(port, "mail receiver")
	for _, part := range []string{fmt.Sprint(port), "mail receiver", fmt.Sprint(os.Getpid()), "ALMANAC_PORT"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %q", err, part)
		}
	}
	l.Close()
	if err := PortFree(port, "mail receiver"); err != nil {
		t.Errorf("a port that was let go: %v", err)
	}
}

func TestListeningInode(t *testing.T) {
	table := `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:11D6 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 21285 1 0 100 0 0 10 0
   1: 0100007F:11D7 0100007F:C0DE 01 00000000:00000000 00:00000000 00000000     0        0 99999 1 0 20 4 30 10 -1
`
	if got := listeningInode(table, 4566); got != "21285" {
		t.Errorf("%q, want 21285", got)
	}
	if got := listeningInode(table, 4567); got != "" {
		t.Errorf("a connection counts as a listener: %q", got)
	}
}

func TestFromLsof(t *testing.T) {
	if got := fromLsof("p123\ncnode\n"); got != "process 123 (node)" {
		t.Errorf("%q", got)
	}
	if got := fromLsof(""); got != "" {
		t.Errorf("%q of nothing", got)
	}
}

func TestDisk(t *testing.T) {
	free := func(n uint64) func(string) (uint64, error) { return func(string) (uint64, error) { return n, nil } }
	if err := Disk("/somewhere", 3<<30, free(4<<30)); err != nil {
		t.Error(err)
	}
	err := Disk("/somewhere", 3<<30, free(100<<20))
	for _, part := range []string{"100 MB", "3072 MB", "/somewhere", "free some space"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %q", err, part)
		}
	}
	if got, err := Free(t.TempDir()); err != nil || got == 0 {
		t.Errorf("free space here: %d, %v", got, err)
	}
}
