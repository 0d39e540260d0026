//go:build unix

package smtpfilter_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"spamgate/internal/hostile"
)

// FuzzHeaderWork looks for headers that cost more than others. With
// SPAMGATE_SLOW_HEADER=20ms in the environment it also measures processor time, the best
// of three, and finds headers that take longer. A fuzzed program is about five times
// slower than usual.
func FuzzHeaderWork(f *testing.F) {
	for _, family := range hostile.Families {
		f.Add(family.Head, family.Unit, family.Tail)
	}
	slow, _ := time.ParseDuration(os.Getenv("SPAMGATE_SLOW_HEADER"))
	f.Fuzz(func(t *testing.T, head, unit, tail string) {
		if len(head)+len(unit)+len(tail) > 4096 || unit == "" {
			return
		}
		section := hostile.Family{Head: head, Unit: unit, Tail: tail}.Section(256 << 10)
		checkWork(t, section)
		if slow == 0 {
			return
		}
		best := time.Hour
		for range 3 {
			began := cpuTime(t)
			checkWork(t, section)
			best = min(best, cpuTime(t)-began)
		}
		if best > slow {
			t.Errorf("%v", best)
		}
	})
}

// cpuTime returns the processor time that the process has used.
func cpuTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
