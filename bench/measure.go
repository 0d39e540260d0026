package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
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
	System  float64 `json:"system_seconds"` // of it in the kernel, to 0.01 s
}

// rowNames are the parts of the report, as --only names them, in the order in which they are measured.
var rowNames = []string{"each", "kept", "large", "postfix", "history", "refusals", "flood", "latency"}

// benchmark measures what the options ask for. It writes its progress to w. A row that fails does not
// end the run: the report has its rounds until then, and the error names it.
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
	s, err := startServers(ctx, t, root, dir, o)
	defer s.stop()
	if err != nil {
		return nil, err
	}
	for _, target := range s.targets { // a first, short run that does not count
		if _, err := s.measure(ctx, t, target, workload{10, 4 << 10, 10, false}); err != nil {
			return nil, fmt.Errorf("%s: %w", target.name, err)
		}
	}
	loads := workloads(o.messages)
	for i, load := range append(loads, loads[1]) {
		r.Rows = append(r.Rows, row{Name: rowNames[i], Workload: load, Runs: map[string][]measurement{}})
	}
	r.Rows[3].Postfix = true
	r.Features = featureRow{r.Rows[0].Workload, map[string][]measurement{}}
	err = s.measureRows(ctx, t, o, r, w)
	r.Idle = s.idle
	for _, t := range s.targets {
		if t.gate {
			r.GateMemory = max(r.GateMemory, t.server.peakMemory())
		}
	}
	return r, err
}

// measureRows measures the rows that the options name, into r.
func (s *servers) measureRows(ctx context.Context, t tools, o options, r *report, w io.Writer) error {
	var failures []error
	for _, name := range rowNames {
		if !slices.Contains(o.only, name) {
			continue
		}
		if err := s.measureRow(ctx, t, o, name, r, w); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			failures = append(failures, fmt.Errorf("%w; bench/run --only %s repeats this row", err, name))
			fmt.Fprintln(w, failures[len(failures)-1])
		}
	}
	return errors.Join(failures...)
}

func (s *servers) measureRow(ctx context.Context, t tools, o options, name string, r *report, w io.Writer) error {
	switch name {
	case "history":
		return s.benchmarkFeatures(ctx, t, o, &r.Features, w)
	case "refusals":
		return s.benchmarkRefusals(ctx, o, r, w)
	case "flood":
		return s.benchmarkFlood(ctx, o, &r.Flood, w)
	case "latency":
		if kept := r.Rows[1]; len(kept.Runs) == 0 { // it tells what half load is
			if err := s.measureMail(ctx, t, 1, names, kept, w); err != nil {
				return err
			}
		}
		return s.benchmarkLatency(ctx, o, r.slowestGate(), &r.Latency, w)
	}
	row, targets := r.Rows[slices.Index(rowNames, name)], names
	if row.Postfix {
		targets = nil
		for _, name := range hopNames {
			targets = append(targets, behind(name))
		}
	}
	return s.measureMail(ctx, t, o.rounds, targets, row, w)
}

// measureMail sends the workload of a row through targets.
func (s *servers) measureMail(ctx context.Context, t tools, rounds int, names []string, r row, w io.Writer) error {
	return s.inTurns(w, rounds, r.String(), names, func(to target) error {
		m, err := s.measure(ctx, t, to, r.Workload)
		if err == nil {
			name := strings.TrimSuffix(to.name, toPostfix)
			r.Runs[name] = append(r.Runs[name], m)
		}
		return err
	})
}

// inTurns measures each of the targets in each round. Whatever else slows the
// machine for a while then slows all alike: they take turns, also in coming first.
func (s *servers) inTurns(w io.Writer, rounds int, what string, names []string, measure func(to target) error) error {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return s.target(name).name == "" })
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

// target returns the target of a name, and one without a name if there is none.
func (s *servers) target(name string) target {
	if i := slices.IndexFunc(s.targets, func(t target) bool { return t.name == name }); i >= 0 {
		return s.targets[i]
	}
	return target{}
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
	m.CPU, m.System = cpu.all.Seconds(), cpu.system.Seconds()
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
	if c[0], err = s.received(to); err != nil || !to.gate {
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
