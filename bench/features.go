package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"spamgate/internal/admin"
)

// Three gates as gateNone: one without a history of decisions; one with a row for each message,
// and the console; one in a fleet, whose server is spamgate-fleetd.
const (
	gateBare    = "spamgate bare"
	gateHistory = "spamgate history"
	gateFleet   = "spamgate fleet"
)

// featureGates are the gates' names, and what their configuration has besides. That of gateFleet
// lacks the address of the server.
var featureGates = []struct{ name, config string }{
	{gateBare, "[decisions]\nkeep = \"0\"\n" + keptList},
	{gateHistory, "[decisions]\nrecord = \"all\"\n[console]\naddr = \"unix:../console.sock\"\nurl = \"https://gate.example\"\n" + keptList},
	{gateFleet, "[decisions]\nkeep = \"0\"\n" + keptList + "fleet = true\n[fleet]\nname = \"mx1\"\nservers = \"nats://%s\"\n"},
}

const keptList = "[[list]]\nname = \"kept\"\nmanaged = true\n"

// startFleetd starts the fleet's server.
func (s *servers) startFleetd(ctx context.Context, t tools, root, dir, addr string) error {
	binary, err := build(ctx, t, root, dir, "fleetd")
	if err != nil {
		return err
	}
	home, err := s.makeDir("spamgate fleetd")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(home, "config.toml"), fmt.Appendf(nil, "[fleet.server]\nlisten = %q\n", addr), 0o600); err != nil {
		return err
	}
	server, err := startProcess(home, "spamgate-fleetd", binary)
	if err == nil {
		s.cleanup = append(s.cleanup, server.stop)
	}
	return err
}

// startFeatureGates starts featureGates. Addr is for the fleet's server.
func (s *servers) startFeatureGates(start func(t target, more string) error, addr string) error {
	for _, g := range featureGates {
		config := g.config
		if g.name == gateFleet {
			config = fmt.Sprintf(config, addr)
		}
		if err := start(target{name: g.name, history: g.name == gateHistory}, config); err != nil {
			return err
		}
	}
	return nil
}

// benchmarkFeatures sends the workload through featureGates.
func (s *servers) benchmarkFeatures(ctx context.Context, t tools, o options, r *featureRow, w io.Writer) error {
	var names []string
	for _, g := range featureGates {
		names = append(names, g.name)
	}
	if err := s.target(gateFleet).joined(ctx); err != nil {
		return err
	}
	return s.measureMail(ctx, t, o.rounds, names, r.row(), w)
}

// joined waits until a gate shares its list.
func (t target) joined(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	client, err := admin.Dial(t.adminSocket())
	if err != nil {
		return err
	}
	for {
		f, err := admin.Call(ctx, client, admin.OpFleet, admin.None{})
		if err == nil && f.State == admin.FleetConnected && len(f.Lists) == 1 && f.Lists[0].Sequence > 0 {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s has not joined its fleet: %+v (%w)", t.name, f, err)
		}
	}
}

func (t target) adminSocket() string { return filepath.Join(t.server.cmd.Dir, "state", "admin.sock") }

// featureRow is the runs of a workload through the gates of featureGates.
type featureRow struct {
	Workload workload                 `json:"workload"`
	Runs     map[string][]measurement `json:"runs"`
}

func (r featureRow) row() row { return row{Name: "history", Workload: r.Workload, Runs: r.Runs} }

// late returns the times from the end of smtp-source until the last row was committed.
func (r *featureRow) late() (f []float64) {
	for _, m := range r.Runs[gateHistory] {
		f = append(f, m.Late)
	}
	return f
}

// rows are the decisions that a gate has written to its history, and those that it dropped.
type rows struct{ written, dropped int64 }

// rows queries a gate with a history. It takes the gate about 0.6 ms, the same as metrics 2 ms.
func (t target) rows(ctx context.Context) (rows, error) {
	client, err := admin.Dial(t.adminSocket())
	if err != nil {
		return rows{}, err
	}
	status, err := admin.Call(ctx, client, admin.OpStatus, admin.None{})
	if err != nil {
		return rows{}, err
	}
	if status.Decisions == nil || status.Decisions.Error != "" {
		return rows{}, fmt.Errorf("the gate has no history: %+v", status.Decisions)
	}
	return rows{status.Decisions.Rows, status.Decisions.Dropped}, nil
}

// committed waits until a gate with a history has so many more rows than before.
func (t target) committed(ctx context.Context, before rows, messages int) error {
	ctx, cancel := context.WithTimeout(ctx, countLimit)
	defer cancel()
	for {
		rows, err := t.rows(ctx)
		switch {
		case err != nil:
			return err
		case rows.dropped > before.dropped:
			return fmt.Errorf("the history dropped %d of %d rows: its disk is full or too slow", rows.dropped-before.dropped, messages)
		case rows.written-before.written == int64(messages):
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the history has %d rows of %d messages", rows.written-before.written, messages)
		}
	}
}

// makeWorkDir makes the directory of the servers, on a disk: in memory the history would cost less than
// it costs users.
func makeWorkDir() (string, error) {
	for _, parent := range []string{os.TempDir(), "/var/tmp"} {
		if !inMemory(parent) {
			return os.MkdirTemp(parent, "spamgate-bench-")
		}
	}
	return "", errors.New("the directory for temporary files is in memory; set TMPDIR to one on a disk")
}

// inMemory reports whether a directory is on tmpfs.
func inMemory(dir string) bool {
	const tmpfs = 0x01021994 // TMPFS_MAGIC of statfs(2)
	var fs unix.Statfs_t
	return unix.Statfs(dir, &fs) == nil && uint32(fs.Type) == tmpfs
}
