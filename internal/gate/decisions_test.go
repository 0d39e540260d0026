package gate

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"spamgate/blocklist/verdict"
	"spamgate/internal/config"
	"spamgate/internal/decisions"
)

// newHistory returns the history of a gate with a state directory of its own, and its log.
func newHistory(t *testing.T, c config.Decisions) (h *history, dir string, log *bytes.Buffer) {
	t.Helper()
	log = new(bytes.Buffer)
	state := t.TempDir()
	h = openHistory(&config.Config{State: config.State{Dir: state}, Decisions: c}, slog.New(slog.NewTextHandler(log, nil)))
	h.configure(c)
	h.begin()
	t.Cleanup(func() { _ = h.close() })
	return h, filepath.Join(state, "decisions"), log
}

// decide gives a history a decision of an event, as a session does.
func decide(h *history, id, event string) {
	h.Record(verdict.Decision{
		Time: time.Now(), Event: event, ID: id, Action: "reject", From: "<x@spam.example>", Recipients: []string{id + "@example.net"}, MoreRecipients: 3})
}

func TestHistory(t *testing.T) {
	on := config.Decisions{Keep: time.Hour, MaxBytes: 1 << 30, Record: "refused"}
	h, dir, log := newHistory(t, on)
	wantFound := func(want int) {
		t.Helper()
		page, err := h.Find(t.Context(), decisions.Query{Sender: "x@spam.example"})
		if err != nil || len(page.Decisions) != want {
			t.Errorf("%d decisions, %v; want %d", len(page.Decisions), err, want)
		}
	}
	if h.Accepted(time.Now()) {
		t.Error(`plain accepts are wanted with record = "refused"`)
	}
	decide(h, "AAAAAAAAAAAA", "refused")
	decide(h, "AAAAAAAAAAAA", "accepted") // of a message of which something was recorded
	wantFound(2)                          // at once
	if s := h.status(); s == nil || s.Rows != 2 || s.Keep != 3600 || s.Error != "" || s.Reach == nil {
		t.Errorf("%+v", s)
	}
	if page, err := h.Find(t.Context(), decisions.Query{ID: "AAAAAAAAAAAA"}); err != nil || len(page.Decisions) == 0 || page.Decisions[0].MoreRecipients != 3 {
		t.Errorf("%+v, %v", page, err)
	}

	all := on
	all.Record = config.RecordAll
	h.configure(all)
	if !h.Accepted(time.Now()) {
		t.Error(`plain accepts are not wanted with record = "all"`)
	}
	wantFound(2)

	h.configure(config.Decisions{MaxBytes: 1 << 30, Record: "refused"})
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("a history that is off has files: %v", err)
	}
	decide(h, "BBBBBBBBBBBB", "refused")
	wantFound(0)
	if s := h.status(); s != nil || h.Accepted(time.Now()) || !strings.Contains(log.String(), "the history of decisions is off, what it kept is removed") {
		t.Errorf("off: %+v\n%s", s, log)
	}

	h.configure(on)
	decide(h, "CCCCCCCCCCCC", "refused")
	wantFound(1)
}

// TestHistoryTrap: what somebody has put in the place of the history is not followed, and what
// that trap leads to is not removed. The gate goes on.
func TestHistoryTrap(t *testing.T) {
	on := config.Decisions{Keep: time.Hour, MaxBytes: 1 << 30, Record: "refused"}
	h, dir, log := newHistory(t, config.Decisions{})
	outside := t.TempDir()
	kept := filepath.Join(outside, "kept")
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, dir); err != nil {
		t.Fatal(err)
	}
	h.configure(on)
	decide(h, "AAAAAAAAAAAA", "refused")
	if s := h.status(); s == nil || s.Error == "" || !strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("%+v\n%s", s, log)
	}
	h.configure(config.Decisions{})
	files, err := os.ReadDir(outside)
	if err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("the link is there: %v", err)
	}
	h.configure(on)
	decide(h, "BBBBBBBBBBBB", "refused")
	if page, err := h.Find(t.Context(), decisions.Query{}); err != nil || len(page.Decisions) != 1 || h.status().Error != "" {
		t.Errorf("%+v, %v, %+v", page, err, h.status())
	}
}

// TestHistoryOff starts a gate without a history while its predecessor has one: nothing is removed before the
// gate works, and then also what the predecessor writes until it ends.
func TestHistoryOff(t *testing.T) {
	before, dir, _ := newHistory(t, config.Decisions{Keep: time.Hour, MaxBytes: 1 << 30, Record: "refused"})
	find := func() int {
		page, err := before.Find(t.Context(), decisions.Query{})
		if err != nil {
			t.Error(err)
		}
		return len(page.Decisions)
	}
	decide(before, "AAAAAAAAAAAA", "refused")
	if n := find(); n != 1 {
		t.Fatalf("%d decisions", n)
	}
	c := &config.Config{State: config.State{Dir: filepath.Dir(dir)}}
	fails := openHistory(c, slog.New(slog.DiscardHandler))
	fails.configure(c.Decisions)
	if err := fails.close(); err != nil || find() != 1 {
		t.Errorf("a gate that did not start has removed the history: %v", err)
	}
	h := openHistory(c, slog.New(slog.DiscardHandler))
	h.configure(c.Decisions)
	h.begin()
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("a history that is off has files: %v", err)
	}
	decide(before, "BBBBBBBBBBBB", "refused")
	if n := find(); n != 1 {
		t.Errorf("the predecessor has %d decisions", n)
	}
	h.cleanAgain()
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("the predecessor's decisions are there: %v", err)
	}
	h.close()
	decide(before, "CCCCCCCCCCCC", "refused")
	if h.cleanAgain(); find() == 0 {
		t.Error("a history that is closed still removes")
	}
}
