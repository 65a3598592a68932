package schedule_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"almanac/internal/schedule"
)

// memoryRecipients is 10,000 where the figure is wanted:
// go test ./internal/schedule -run MemoryOfManyRecipients -memory.recipients 10000 -v
var memoryRecipients = flag.Int("memory.recipients", 1_500, "recipients of the run whose memory is measured")

// memoryChild names the variable under which this test binary is the process whose memory is measured.
const memoryChild = "ALMANAC_MEMORY_CHILD"

// memoryBound is what a consumer of ten thousand recipients may take, in bytes: the smallest size of a Lambda function.
const memoryBound = 128 << 20

// The memory of a consumer of many recipients, measured as the largest resident set of a process of its own (VmHWM of
// https://man7.org/linux/man-pages/man5/proc_pid_status.5.html, which begins anew with the program). The
// process holds the whole world, the AWS in memory with all its rows as well; so a consumer alone takes less.
// What the receivers keep for the other tests is dropped.
func TestMemoryOfManyRecipients(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the largest resident set is read as Linux counts it")
	}
	if os.Getenv(memoryChild) != "" {
		consumeMany(t)
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^TestMemoryOfManyRecipients$", "-test.v", fmt.Sprint("-memory.recipients=", *memoryRecipients))
	child.Env = append(os.Environ(), memoryChild+"=1", "GOMEMLIMIT=off", "GOGC=100")
	out, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "consumed") {
		t.Fatalf("%v\n%s", err, out)
	}
	peak := int64(0)
	for line := range strings.Lines(string(out)) {
		if _, figures, ok := strings.Cut(line, "consumed: "); ok {
			t.Log(strings.TrimSpace(figures))
			if _, err := fmt.Sscanf(figures, "largest resident set %d kB", &peak); err != nil {
				t.Fatalf("%q: %v", figures, err)
			}
		}
	}
	peak <<= 10
	t.Logf("largest resident set, consumer and cloud together: %.1f MiB; bound %d MiB", float64(peak)/(1<<20), memoryBound>>20)
	if peak == 0 || peak > memoryBound {
		t.Errorf("%d bytes, want at most %d", peak, int64(memoryBound))
	}
}

func consumeMany(t *testing.T) {
	w := newWorld(t, mailRate(0))
	d := w.definition("s")
	for i := range *memoryRecipients {
		r := schedule.Recipient{Email: fmt.Sprintf("somebody.with.a.long.name.%05d@a-department.of-a-company.example.com", i)}
		if i%10 == 9 {
			r = schedule.Recipient{Webhook: fmt.Sprintf("%s?of=%s", w.hooks.address(fmt.Sprint("hook-", i)), strings.Repeat("x", 200)), Secret: "ops"}
		}
		d.Recipients = append(d.Recipients, r)
	}
	w.apply(d)
	d.Recipients = nil
	w.to(firstDue)
	w.tick()
	calls := 0
	w.taking(10*time.Minute/time.Duration(*memoryRecipients), func(outside) fault {
		if calls++; calls%100 == 0 {
			w.mail.mu.Lock()
			w.mail.kept, w.mail.at = nil, nil
			clear(w.mail.asked)
			w.mail.mu.Unlock()
			w.hooks.mu.Lock()
			w.hooks.posts = nil
			clear(w.hooks.asked)
			w.hooks.mu.Unlock()
			w.log.mu.Lock()
			w.log.buf.Reset()
			w.log.mu.Unlock()
			w.faults.mu.Lock()
			w.faults.log = nil
			w.faults.mu.Unlock()
		}
		return none
	})
	for w.deliver() {
	}
	r := w.runs("s")[0]
	if r.State != schedule.Succeeded || r.Submitted != *memoryRecipients || r.Yields < 3 {
		t.Fatalf("%s %s %s: %d submitted, %d yields", r.State, r.ErrorCode, r.ErrorText, r.Submitted, r.Yields)
	}
	status, err := os.ReadFile("/proc/self/status")
	w.must(err)
	_, high, found := strings.Cut(string(status), "VmHWM:")
	kB := 0
	if _, err := fmt.Sscanf(high, "%d kB", &kB); err != nil || !found {
		t.Fatalf("%v: %.40q", err, high)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("consumed: largest resident set %d kB; %d recipients, %d attempts; memory obtained from the system by Go %.1f MiB", kB, r.Submitted, r.Attempts, float64(m.Sys)/(1<<20))
}
