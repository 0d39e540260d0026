package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/internal/cli"
	"spamgate/internal/config"
	"spamgate/internal/logging"
	"spamgate/internal/setup"
)

// TestStartFaults runs serve where only the start can show what is wrong: each error
// has the place in the configuration, and a remedy.
func TestStartFaults(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const inUse = ": bind: address already in use; stop what listens there, or set another port"
	for name, test := range map[string]struct{ config, want string }{
		"listen": {
			fmt.Sprintf("[listen]\naddr = %q\n", l.Addr()),
			"config.toml:2:1: listen.addr: listen tcp4 " + l.Addr().String() + inUse,
		},
		"listener": {
			fmt.Sprintf("[[listener]]\naddr = \"127.0.0.1:0\"\n[[listener]]\nname = \"second\"\naddr = %q\n", l.Addr()),
			"config.toml:5:1: listener.addr: listen tcp4 " + l.Addr().String() + inUse,
		},
		"metrics": {
			fmt.Sprintf("[listen]\naddr = \"127.0.0.1:0\"\n[admin]\nmetrics_addr = %q\n", l.Addr()),
			"config.toml:4:1: admin.metrics_addr: listen tcp4 " + l.Addr().String() + inUse,
		},
		"systemd": {
			"[listen]\naddr = \"systemd\"\n",
			`config.toml:2:1: listen.addr: "systemd": systemd passed no socket; start the gate through its socket unit, or set addr to host:port`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := startDir(t, test.config+"[next_hop]\naddr = \"maildir:mail\"\n")
			if text, code := runIn(t, dir, "serve"); code != cli.ExitError || !strings.Contains(text, "spamgate: "+test.want+"\n") {
				t.Errorf("exit code %d, got %q, want %q", code, text, test.want)
			}
		})
	}
}

// TestLogIsNotThere opens logs that a machine need not have.
func TestLogIsNotThere(t *testing.T) {
	for _, output := range []string{logging.OutputSyslog, logging.OutputJournal} {
		t.Run(output, func(t *testing.T) {
			c, err := config.Load(filepath.Join(startDir(t, fmt.Sprintf("[log]\noutput = %q\n", output)), "config.toml"))
			if err != nil {
				t.Fatal(err)
			}
			stderr := logging.NewWriter(io.Discard)
			defer stderr.Close()
			l, err := setup.OpenLog(c, stderr)
			if err == nil {
				l.Close()
				t.Skip("this machine has it")
			}
			fault := new(config.Error)
			if !errors.As(err, &fault) || fault.Line != 2 || fault.Key != "log.output" || !strings.Contains(fault.Hint, `write output = "stderr"`) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// startDir makes a directory with a configuration and a list.
func startDir(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(text+"[[list]]\nname = \"blocked\"\npath = \"blocked.txt\"\n"), 0o600)
	if err := errors.Join(err, os.WriteFile(filepath.Join(dir, "blocked.txt"), []byte("spam.example\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	return dir
}
