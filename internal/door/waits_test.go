package door

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"spamgate/blocklist"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
	"spamgate/internal/door/doortest"
)

// unable is a Checker whose lists cannot be asked.
type unable struct{}

func (unable) Judge() verdict.Judge { return judged(1) }

// TestOutageIsNoListing: a recipient who is deferred because the lists cannot be asked counts as
// failed, and not as listed.
func TestOutageIsNoListing(t *testing.T) {
	meter := new(counts)
	d := New(Config{Protocol: "milter", Name: "beside", Meter: meter}, Settings{Checker: unable{}})
	if a := d.Begin(t.Context(), Envelope{From: "a@clean.example"}).Recipient("you@example.net"); !a.NoAnswer {
		t.Errorf("%+v", a)
	}
	if got := strings.Join(meter.all, " "); got != "failed" {
		t.Errorf("counted %q", got)
	}
}

// TestMonitoredAtTheEnd: what a list that is tried would have done with a sender is logged, too, if
// the verdict about him waits for the end of his message.
func TestMonitoredAtTheEnd(t *testing.T) {
	c, err := doortest.New(
		doortest.List{Name: "partners", Entries: "partner.example\n", List: store.List{Type: blocklist.Allow, ProvenBy: verdict.DKIM}},
		doortest.List{Name: "blocked", Entries: "partner.example\n", List: store.List{Action: verdict.Reject}},
		doortest.List{Name: "tried", Entries: "a@partner.example\n", List: store.List{Action: verdict.Monitor}},
	)
	if err != nil {
		t.Fatal(err)
	}
	log := new(bytes.Buffer)
	d := New(Config{Protocol: "milter", Log: slog.New(slog.NewTextHandler(log, nil))}, Settings{Checker: c})
	m := d.Begin(t.Context(), Envelope{From: "a@partner.example"})
	m.Recipient("you@example.net")
	before := strings.Count(log.String(), "msg=monitored")
	m.Header([]byte("Subject: x\r\n"), nil)
	m.End()
	if before != 0 || strings.Count(log.String(), "msg=monitored") != 1 {
		t.Errorf("%d before the end; the log:\n%s", before, log)
	}
}
