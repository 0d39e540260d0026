package main

import (
	"context"
	"fmt"
	"time"
)

// What a contender may use of one core while another is measured: a share of the
// time, and in a short run what it does every two minutes, which is to collect its
// garbage (3 ms where that was measured, more beside other work).
const (
	idleShare = 0.01
	idleFloor = 20 * time.Millisecond
)

// Before a run all must have been idle for so long; they may take a while to have
// done with the run before, or with starting.
const (
	quietTime  = 50 * time.Millisecond
	quietLimit = 30 * time.Second
)

// idleness is what a contender has used while others were measured.
type idleness struct {
	Seconds float64 `json:"seconds"` // how long that was
	CPU     float64 `json:"cpu_seconds"`
}

// share returns the part of one core that was used.
func (i idleness) share() float64 { return i.CPU / max(i.Seconds, 1e-9) }

// alone runs f, in which of all contenders only one has work, and returns the
// processor time that this one has used. It fails if another has worked too: the
// machine would then not be the measured one's alone.
func (s *servers) alone(ctx context.Context, working target, f func() error) (cpu time.Duration, err error) {
	if err := s.waitQuiet(ctx); err != nil {
		return 0, err
	}
	before, start := s.cpu(), time.Now()
	if err := f(); err != nil {
		return 0, err
	}
	took, after := time.Since(start), s.cpu()
	for _, t := range s.targets {
		used := after[t.name] - before[t.name]
		if t.name == working.name {
			cpu = used
			continue
		}
		i := s.idle[t.name]
		s.idle[t.name] = idleness{i.Seconds + took.Seconds(), i.CPU + used.Seconds()}
		if used > max(idleFloor, time.Duration(idleShare*float64(took))) {
			return cpu, t.disturbs(used, took)
		}
	}
	return cpu, nil
}

// disturbs is the error that an idle contender worked.
func (t target) disturbs(used, took time.Duration) error {
	return fmt.Errorf("%s, which had nothing to do, used %.1f%% of a core (%s in %s): something wakes it, such as a file that changes in a directory that it watches; look with strace -f -p %d",
		t.name, 100*used.Seconds()/took.Seconds(), used.Round(10*time.Microsecond), took.Round(time.Millisecond), t.server.cmd.Process.Pid)
}

// waitQuiet waits until no contender has work.
func (s *servers) waitQuiet(ctx context.Context) error {
	for begun := time.Now(); ; {
		before, start := s.cpu(), time.Now()
		select {
		case <-time.After(quietTime):
		case <-ctx.Done():
			return ctx.Err()
		}
		took, after := time.Since(start), s.cpu()
		busy, most := target{}, time.Duration(idleShare*float64(took))
		for _, t := range s.targets {
			if used := after[t.name] - before[t.name]; used > most {
				busy, most = t, used
			}
		}
		if busy.server == nil {
			return nil
		}
		if time.Since(begun) > quietLimit {
			return busy.disturbs(most, took)
		}
	}
}

// cpu returns the processor time of each contender so far.
func (s *servers) cpu() map[string]time.Duration {
	table := readProcesses()
	used := map[string]time.Duration{}
	for _, t := range s.targets {
		if t.server != nil {
			used[t.name] = table.cpu(t.server.cmd.Process.Pid)
		}
	}
	return used
}
