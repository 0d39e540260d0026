package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/internal/cli"
	"spamgate/internal/cli/fleetd"
)

// TestMistakes has command lines and files with which no server can run.
func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		config string
		args   []string
		want   string
	}{
		{"", nil, `fleet.server.listen: is missing: there is no server to run; write [fleet.server]`},
		{"[fleet]\nservers = \"nats://192.0.2.1\"\n", nil, `fleet.server.listen: is missing`},
		{"[fleet.server]\nlisten = \"192.0.2.1:4222\"\n", nil, `is open beyond this machine, and without credentials`},
		{"[fleet]\ncredentials = \"missing\"\n[fleet.server]\nlisten = \"127.0.0.1:4222\"\n", nil, "starting the server of the fleet: credentials of [fleet]: "},
		{"nonsense = 1\n", nil, "nonsense"},
		{"", []string{"server"}, "spamgate-fleetd: unknown command"},
	} {
		file := filepath.Join(t.TempDir(), "config.toml")
		if err := os.WriteFile(file, []byte(c.config), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		code := cli.Run(t.Context(), fleetd.NewCommand(), append(c.args, "--config", file), nil, &out, &errs)
		if code != cli.ExitError || !strings.HasPrefix(errs.String(), "spamgate-fleetd: ") || !strings.Contains(errs.String(), c.want) {
			t.Errorf("%q: exit code %d, %q, want %q", c.config, code, &errs, c.want)
		}
	}
}
