package console

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/store"
	"spamgate/internal/admin"
	"spamgate/internal/check"
	"spamgate/internal/config"
	"spamgate/internal/decisions"
	"spamgate/internal/managed"
	"spamgate/internal/report"
	"spamgate/internal/setup"
)

// partsConfig is the configuration of a console with real parts.
const partsConfig = `
hostname = "mx.example"
[state]
dir = "state"
[[list]]
name = "blocked"
managed = true
default = true
[[list]]
name = "allowed"
managed = true
type = "allow"
default = true
[[list]]
name = "allowed-for"
managed = true
type = "allow"
per_recipient = true
default = true
[[list]]
name = "file"
path = "file.txt"
`

// parts are a console and the real parts of a gate that it shows.
type parts struct {
	*Console
	t      testing.TB
	config *config.Config
	gate   *partsGate
}

// newParts returns a console with a history, lists and an editor. More is added to the
// configuration.
func newParts(t testing.TB, more string) *parts {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"config.toml": partsConfig + more, "file.txt": "listed.example # in a file\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := &parts{t: t}
	var err error
	if p.config, err = config.Load(filepath.Join(dir, "config.toml")); err != nil {
		t.Fatal(err)
	}
	current := func() *config.Config { return p.config }
	if err := managed.Make(p.config); err != nil {
		t.Fatal(err)
	}
	lists, err := setup.BlocklistConfig(p.config, nil)
	if err != nil {
		t.Fatal(err)
	}
	live, err := store.Open(context.Background(), lists)
	if err != nil {
		t.Fatal(err)
	}
	show, err := setup.ShowAddress(p.config)
	if err != nil {
		t.Fatal(err)
	}
	recorder, reader := openHistory(t, p.config.State.Dir)
	t.Cleanup(func() {
		if err := live.Close(); err != nil {
			t.Error(err)
		}
	})
	p.gate = &partsGate{config: current, set: live.Set}
	p.Console = testConsole(t, func(o *Options) {
		o.Config, o.Gate, o.Show = current, p.gate, show
		o.Recorder, o.History = func() *decisions.Recorder { return recorder }, reader
		o.Editor = managed.New(current, live)
		o.Check = check.New(check.Options{Config: current, Set: live.Set})
		o.Logger = slog.New(slog.DiscardHandler)
	})
	return p
}

// openHistory opens a history in a state directory.
func openHistory(t testing.TB, state string) (*decisions.Recorder, *decisions.Reader) {
	t.Helper()
	dir := filepath.Join(state, "decisions")
	recorder, err := decisions.Open(decisions.Options{Dir: dir, Keep: 7 * 24 * time.Hour, MaxBytes: 1 << 40, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	reader := decisions.NewReader(dir)
	t.Cleanup(func() {
		if err := recorder.Close(); err != nil {
			t.Error(err)
		}
		reader.Close()
	})
	return recorder, reader
}

// record adds rows to the history, and waits until searches find them.
func (p *parts) record(rows ...decisions.Decision) {
	p.t.Helper()
	for i := range rows {
		p.Recorder().Record(&rows[i])
	}
	if err := p.Recorder().Sync(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
}

// partsGate is the gate of a console in a test: its lists are real.
type partsGate struct {
	admin.Gate // what no page asks

	config func() *config.Config
	set    func() *blocklist.Set
	health admin.Health
}

func (g *partsGate) Status() admin.Status { return report.Status(g.config(), g.set().Stats()) }

func (g *partsGate) Health(context.Context) admin.Health { return g.health }

// refusal returns a row about a refused message that came some time ago.
func refusal(id string, ago time.Duration) decisions.Decision {
	instant := time.Now().Add(-ago).Round(0)
	return decisions.Decision{
		ID: id, Time: instant, Last: instant, Count: 1, Event: "refused", Level: "INFO", Listener: "listen", Client: "203.0.113.7:40596", Helo: "client.example.com",
		Sender: "x@mail.spam.example", Recipients: []string{"ann@b.example"}, MessageID: "<m1@mail.spam.example>",
		Action: "reject", List: "blocked", Entry: "spam.example", Reason: "unsolicited mail",
		Reply: "550 5.7.1 <x@mail.spam.example> refused: list blocked (unsolicited mail); id " + id,
		Size:  4711, Duration: 208 * time.Microsecond,
		Attrs: []decisions.Attr{{Key: "tls", Value: "TLS 1.3"}, {Key: "identity", Value: "envelope"}, {Key: "source", Value: "state/managed/blocked.txt:3"}},
	}
}
