package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// workload is what smtp-source sends in one run.
type workload struct {
	Messages int  `json:"messages"`
	Size     int  `json:"bytes"` // of the body
	Sessions int  `json:"sessions"`
	Keep     bool `json:"connections_kept"` // false: a connection for each message
}

func workloads(messages int) []workload {
	return []workload{
		{messages, 4 << 10, 20, false},
		{messages, 4 << 10, 20, true},
		{messages / 10, 1 << 20, 10, false},
	}
}

// measurement is one run.
type measurement struct {
	Seconds float64 `json:"seconds"`     // from the start of smtp-source to its end
	CPU     float64 `json:"cpu_seconds"` // of what stands between, until the last message is noted; 0 if nothing does
}

// benchmark measures everything. It reports its progress to w.
func benchmark(ctx context.Context, o options, w io.Writer) (*report, error) {
	t, err := findTools()
	if err != nil {
		return nil, err
	}
	root := output(ctx, "", t.goTool, "list", "-m", "-f", "{{.Dir}}")
	r := &report{Machine: describeMachine(ctx, t, root), Reuse: o.reuse}
	dir, err := os.MkdirTemp("", "spamgate-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	fmt.Fprintln(w, "building the gate, starting the servers")
	s, err := startServers(ctx, t, root, dir, o.reuse)
	defer s.stop()
	if err != nil {
		return nil, err
	}
	for _, target := range s.targets { // a first, short run that does not count
		if _, err := s.measure(ctx, t, target, workload{10, 4 << 10, 10, false}); err != nil {
			return nil, err
		}
	}
	for i, load := range workloads(o.messages) {
		row := row{Workload: load, Runs: map[string][]measurement{}}
		for round := range o.rounds {
			fmt.Fprintf(w, "%s: round %d of %d\n", load, round+1, o.rounds)
			// What else slows the machine for a while should slow all alike: they
			// take turns, and so they do in coming first.
			for j := range s.targets {
				target := s.targets[(i+round+j)%len(s.targets)]
				m, err := s.measure(ctx, t, target, load)
				if err != nil {
					return nil, err
				}
				row.Runs[target.name] = append(row.Runs[target.name], m)
			}
		}
		r.Rows = append(r.Rows, row)
	}
	if r.Refusals, err = s.benchmarkRefusals(ctx, o, w); err != nil {
		return nil, err
	}
	if r.Flood, err = s.benchmarkFlood(ctx, o, w); err != nil {
		return nil, err
	}
	if r.Latency, err = s.benchmarkLatency(ctx, o, r.slowestGate(), w); err != nil {
		return nil, err
	}
	r.Idle = s.idle
	for _, g := range gates {
		r.GateMemory = max(r.GateMemory, s.target(g.name).server.peakMemory())
	}
	return r, nil
}

// target is the target of a name.
func (s *servers) target(name string) target {
	for _, t := range s.targets {
		if t.name == name {
			return t
		}
	}
	panic("no target " + name)
}

// runLimit is how long one run may take.
const runLimit = 5 * time.Minute

// measure sends one workload through a target, and checks that all of it has
// arrived: a server that refuses mail would be fast.
func (s *servers) measure(ctx context.Context, t tools, to target, load workload) (m measurement, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s, %s: %w", load, to.name, err)
		}
	}()
	before, err := s.count(to)
	if err != nil {
		return m, err
	}
	ctx, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	source := exec.CommandContext(ctx, t.source, load.sourceArgs(to.addr)...)
	cpu, err := s.alone(ctx, to, func() error {
		start := time.Now()
		out, err := source.CombinedOutput()
		m.Seconds = time.Since(start).Seconds()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return s.arrived(ctx, to, before, load.Messages)
	})
	m.CPU = cpu.Seconds()
	return m, err
}

// countLimit is how long the sink and the gate may take to note a message behind the
// reply to it.
const countLimit = 30 * time.Second

// arrived waits until so many messages more than before have been noted.
func (s *servers) arrived(ctx context.Context, to target, before counts, messages int) error {
	ctx, cancel := context.WithTimeout(ctx, countLimit)
	defer cancel()
	for {
		now, err := s.count(to)
		if err != nil {
			return err
		}
		received, decided := now.received-before.received, now.decided-before.decided
		if received == messages && (!to.gate || decided == messages) {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
			continue
		case <-ctx.Done():
		}
		if received != messages {
			return fmt.Errorf("the sink received %d messages", received)
		}
		return fmt.Errorf("the gate logged %d accepted messages", decided)
	}
}

// counts are running totals.
type counts struct {
	received int // by the sink
	decided  int // by the gate, where that is the target
}

func (s *servers) count(to target) (c counts, err error) {
	if c.received, err = s.received(); err != nil || !to.gate {
		return c, err
	}
	c.decided, err = to.decided()
	return c, err
}

// sourceArgs are the arguments of smtp-source.
func (w workload) sourceArgs(addr string) []string {
	args := []string{
		"-M", "client.example", "-f", "sender@clean.example", "-t", "recipient@example.net",
		"-m", strconv.Itoa(w.Messages),
		"-s", strconv.Itoa(min(w.Sessions, w.Messages)),
		"-l", strconv.Itoa(w.Size),
	}
	if w.Keep {
		args = append(args, "-d")
	}
	return append(args, addr)
}

// String is the workload as the report names it.
func (w workload) String() string {
	size := fmt.Sprintf("%d KiB", w.Size>>10)
	if w.Size >= 1<<20 {
		size = fmt.Sprintf("%d MiB", w.Size>>20)
	}
	how := "a connection each"
	if w.Keep {
		how = "connections kept"
	}
	return fmt.Sprintf("%s × %s, %d sessions, %s", thousands(w.Messages), size, w.Sessions, how)
}

// thousands writes a number with commas.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	var groups []string
	for len(digits) > 3 {
		groups = append([]string{digits[len(digits)-3:]}, groups...)
		digits = digits[:len(digits)-3]
	}
	return strings.Join(append([]string{digits}, groups...), ",")
}
