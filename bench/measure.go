package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"spamgate/internal/text"
)

// workload is the mail that smtp-source sends in one run.
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
	Seconds float64 `json:"seconds"`        // from the start of smtp-source to its end, and until a history has the last row
	Late    float64 `json:"late,omitempty"` // of it after the end of smtp-source
	CPU     float64 `json:"cpu_seconds"`    // of the server between, until it has logged the last message; 0 if there is none
}

// benchmark measures everything. It writes its progress to w.
func benchmark(ctx context.Context, o options, w io.Writer) (*report, error) {
	t, err := findTools()
	if err != nil {
		return nil, err
	}
	root := output(ctx, "", t["go"], "list", "-m", "-f", "{{.Dir}}")
	r := &report{Machine: describeMachine(ctx, t, root), Reuse: o.reuse}
	dir, err := makeWorkDir()
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
			return nil, fmt.Errorf("%s: %w", target.name, err)
		}
	}
	for _, load := range workloads(o.messages) {
		row := row{Workload: load, Runs: map[string][]measurement{}}
		err := s.inTurns(w, o.rounds, load.String(), names, func(to target) error {
			m, err := s.measure(ctx, t, to, load)
			row.Runs[to.name] = append(row.Runs[to.name], m)
			return err
		})
		if err != nil {
			return nil, err
		}
		r.Rows = append(r.Rows, row)
	}
	if r.Features, err = s.benchmarkFeatures(ctx, t, o, workloads(o.messages)[0], w); err != nil {
		return nil, err
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
	for _, t := range s.targets {
		if t.gate {
			r.GateMemory = max(r.GateMemory, t.server.peakMemory())
		}
	}
	return r, nil
}

// inTurns measures each of the targets in each round. Whatever else slows the
// machine for a while then slows all alike: they take turns, also in coming first.
func (s *servers) inTurns(w io.Writer, rounds int, what string, names []string, measure func(to target) error) error {
	for round := range rounds {
		fmt.Fprintf(w, "%s: round %d of %d\n", what, round+1, rounds)
		for i := range names {
			to := s.target(names[(i+round)%len(names)])
			if err := measure(to); err != nil {
				return fmt.Errorf("%s, %s: %w", what, to.name, err)
			}
		}
	}
	return nil
}

// target returns the target of a name.
func (s *servers) target(name string) target {
	return s.targets[slices.IndexFunc(s.targets, func(t target) bool { return t.name == name })]
}

// runLimit is how long one run may take.
const runLimit = 5 * time.Minute

// measure sends one workload through a target, and checks that the sink received
// all of it: a server that refuses mail would be fast.
func (s *servers) measure(ctx context.Context, t tools, to target, load workload) (m measurement, err error) {
	before, err := s.counts(to)
	if err != nil {
		return m, err
	}
	ctx, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	var had rows
	if to.history {
		if had, err = to.rows(ctx); err != nil {
			return m, err
		}
	}
	source := exec.CommandContext(ctx, t["smtp-source"], load.sourceArgs(to.addr)...)
	cpu, err := s.alone(ctx, to, func() error {
		start := time.Now()
		out, err := source.CombinedOutput()
		m.Seconds = time.Since(start).Seconds()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		if to.history {
			if err := to.committed(ctx, had, load.Messages); err != nil {
				return err
			}
			m.Late = time.Since(start).Seconds() - m.Seconds
			m.Seconds += m.Late
		}
		return s.arrived(ctx, to, before, load.Messages)
	})
	m.CPU = cpu.Seconds()
	return m, err
}

// countLimit is how long the sink and the gate may take to log a message after
// their reply.
const countLimit = 30 * time.Second

// arrived waits until so many more messages than before have been logged.
func (s *servers) arrived(ctx context.Context, to target, before [2]int, messages int) error {
	ctx, cancel := context.WithTimeout(ctx, countLimit)
	defer cancel()
	for {
		current, err := s.counts(to)
		if err != nil {
			return err
		}
		received, accepted := current[0]-before[0], current[1]-before[1]
		if received == messages && accepted == messages {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the sink received %d messages, and the gate, if any, logged %d as accepted", received, accepted)
		}
	}
}

// counts returns how many messages the sink has received so far, and how many the
// gate has logged as accepted; without a gate both are the sink's.
func (s *servers) counts(to target) (c [2]int, err error) {
	if c[0], err = s.received(); err != nil || !to.gate {
		return [2]int{c[0], c[0]}, err
	}
	c[1], err = to.accepted()
	return c, err
}

// sourceArgs returns the arguments of smtp-source.
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

// String returns the workload as the report names it.
func (w workload) String() string {
	size := fmt.Sprintf("%d KiB", w.Size>>10)
	if w.Size >= 1<<20 {
		size = fmt.Sprintf("%d MiB", w.Size>>20)
	}
	how := "a connection each"
	if w.Keep {
		how = "connections kept"
	}
	return fmt.Sprintf("%s × %s, %d sessions, %s", text.Number(w.Messages), size, w.Sessions, how)
}
