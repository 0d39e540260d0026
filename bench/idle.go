package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"
)

// The CPU time that a contender may use while another is measured: a share of one
// core, or in a short run the time of a garbage collection, which runs every two
// minutes (measured: 3 ms, more on a busy machine).
const (
	idleShare = 0.01
	idleFloor = 20 * time.Millisecond
)

// Before a run all contenders must have been idle for quietTime. They may need up
// to quietLimit to finish the run before, or their start.
const (
	quietTime  = 50 * time.Millisecond
	quietLimit = 30 * time.Second
)

// idleness is the CPU time that a contender used while others were measured.
type idleness struct {
	Seconds float64 `json:"seconds"` // of those runs
	CPU     float64 `json:"cpu_seconds"`
}

// share returns the part of one core that the contender used.
func (i idleness) share() float64 { return i.CPU / max(i.Seconds, 1e-9) }

// alone runs f, during which only one of the contenders has work, and returns the
// CPU time that this one used. It is an error if another worked too: then the
// measured one did not have the machine to itself.
func (s *servers) alone(ctx context.Context, working target, f func() error) (cpu usage, err error) {
	if err := s.waitQuiet(ctx); err != nil {
		return usage{}, err
	}
	before, start := s.cpu(), time.Now()
	if err := f(); err != nil {
		return usage{}, err
	}
	took, after := time.Since(start), s.cpu()
	for _, t := range s.targets {
		if t.name == working.name {
			cpu = after[t.name].since(before[t.name])
			continue
		}
		used := after[t.name].all - before[t.name].all
		i := s.idle[t.name]
		s.idle[t.name] = idleness{i.Seconds + took.Seconds(), i.CPU + used.Seconds()}
		if used > max(idleFloor, time.Duration(idleShare*float64(took))) {
			return cpu, t.disturbs(used, took)
		}
	}
	return cpu, nil
}

// disturbs returns the error of a contender that worked without having work.
func (t target) disturbs(used, took time.Duration) error {
	return fmt.Errorf("%s, which had nothing to do, used %.1f%% of a core (%s in %s): something wakes it, such as a file that changes in a directory that it watches; look with strace -f -p %d",
		t.name, 100*used.Seconds()/took.Seconds(), used.Round(10*time.Microsecond), took.Round(time.Millisecond), t.server.cmd.Process.Pid)
}

// waitQuiet waits until all contenders are idle.
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
			if used := after[t.name].all - before[t.name].all; used > most {
				busy, most = t, used
			}
			if !s.hasMeasured(t) {
				busy = t
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

// cpu returns the CPU time of each contender so far.
func (s *servers) cpu() map[string]usage {
	table := readProcesses()
	used := map[string]usage{}
	for _, t := range s.targets {
		if t.server != nil {
			used[t.name] = table.cpu(t.server.cmd.Process.Pid)
		}
	}
	return used
}

// startTime is how long a gate has work of its start: after five seconds it gives memory back.
const startTime = 8 * time.Second

// hasMeasured reports whether a gate has done the work of its start, of which the last is to measure its
// filter, or to give memory back.
func (s *servers) hasMeasured(t target) bool {
	if !t.gate || s.settled[t.name] {
		return true
	}
	if time.Since(t.server.begun) < startTime {
		return false
	}
	text, err := os.ReadFile(t.server.logPath)
	if err == nil && bytes.Contains(text, []byte(`msg="filter measured"`)) {
		s.settled[t.name] = true
	}
	return s.settled[t.name]
}
