package browser

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"spamgate/internal/admin"
	"spamgate/internal/decisions"
	"spamgate/internal/e2e/harness"
	"spamgate/internal/fleet"
)

const (
	supplier   = "orders@parts.example"
	supplierID = "2ZFPDJSVUUAR"
)

// TestPictures shows what the pictures of the documentation show: a day of mail, a message that
// was refused, and what letting its sender in changes. With SPAMGATE_PICTURES=DIR it writes them.
func TestPictures(t *testing.T) {
	if os.Getenv("SPAMGATE_PICTURES") == "" {
		t.Skip("SPAMGATE_PICTURES is not set: the other tests go the same ways")
	}
	t.Parallel()
	s := startPrepared(t, harness.Setup{
		Hostname: "mx.example.net",
		Tables:   "[policy]\ncontact = \"ask postmaster@example.net\"\n",
		Lists:    harness.ManagedLists + "[[list]]\nname = \"imported\"\npath = \"imported.txt\"\n",
		Files: map[string]string{
			"blocked.txt":  "spam.example  # unsolicited mail\nshop.example  # sold our addresses\n",
			"imported.txt": harness.NumberedList(1500) + "parts.example  # open relay\nbank.phish.example  # phishing\n",
		},
	}, func(dir string) { recordDay(t, filepath.Join(dir, "state", "decisions")) })
	harness.WaitFor(t, "the gate's health", func() bool {
		var health struct{ Healthy bool }
		s.api.Must(t, 200, "GET", "/api/v1/health", nil, &health)
		return health.Healthy
	})

	browser := startBrowser(t)
	b := s.login(t, browser, "viewer")
	b.resize(1100, 780)
	b.open("/now")
	b.shows("The gate works", "By reason", "phishing")
	b.docPicture("now")

	b = s.login(t, browser, "helpdesk")
	b.resize(1100, 640)
	b.open("/mail?q=" + ann)
	b.shows(supplier, "open relay", "Let in…")
	b.docPicture("mail")
	b.resize(1100, 700)
	b.open("/mail/" + supplierID)
	b.shows("The gate refused the sender <"+supplier+">", "What would happen now")
	b.docPicture("message")
	b.click("Let in…")
	b.resize(1100, 800)
	b.shows("With this entry, the message that you came from passes.", "Let in "+supplier+" for "+ann+" for a day")
	b.fill("Reason", "a supplier, ticket 4711")
	b.docPicture("let-in")
	b.clean("the pictures")
}

// TestFleetPicture shows a fleet in which one gate is behind.
func TestFleetPicture(t *testing.T) {
	if os.Getenv("SPAMGATE_PICTURES") == "" {
		t.Skip("SPAMGATE_PICTURES is not set: the other tests go the same ways")
	}
	t.Parallel()
	n := harness.StartNATS(t)
	s := startSite(t, inFleet(n, harness.Setup{Hostname: "mx1.example.net", Lists: harness.ManagedLists}))
	s.waitFleet(t)
	s.api.Must(t, http.StatusCreated, "POST", "/api/v1/lists/blocked/entries", object{"entry": "news.example", "reason": "asked three times to stop"}, nil)
	var f admin.Fleet
	harness.WaitFor(t, "the entry in the state of the fleet", func() bool {
		s.api.Must(t, http.StatusOK, "GET", "/api/v1/fleet", nil, &f)
		return slices.ContainsFunc(f.Lists, func(l fleet.ListStatus) bool { return l.Name == "blocked" && l.Sequence > 1 })
	})
	equal := fleet.Presence{Name: "mx2", Version: f.Members[0].Version, Lists: f.Lists}
	full := fleet.Presence{Name: "mx3", Version: f.Members[0].Version, Lists: slices.Clone(f.Lists)}
	for i := range full.Lists {
		if l := &full.Lists[i]; l.Name == "blocked" {
			l.Sequence--
			l.Error = "writing the list: no space left on device"
		}
	}
	addMembers(t, n, equal, full)
	b := s.login(t, startBrowser(t), "viewer")
	b.resize(1100, 860)
	harness.WaitFor(t, "the page with all members", func() bool {
		b.open("/fleet")
		return strings.Contains(b.text(), "mx3")
	})
	b.docPicture("fleet")
	b.clean("the picture")
}

// docPicture writes a picture of what the window shows.
func (b *tab) docPicture(name string) {
	b.t.Helper()
	dir := os.Getenv("SPAMGATE_PICTURES")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// recordDay records a day of mail.
func recordDay(t testing.TB, dir string) {
	t.Helper()
	r, err := decisions.Open(decisions.Options{Dir: dir, Keep: 7 * 24 * time.Hour, MaxBytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	const step = 10 * time.Minute
	for i := range int(24 * time.Hour / step) {
		at := now.Add(step*time.Duration(i+1) - 24*time.Hour - 5*time.Minute)
		busy := 1.2 - math.Cos(2*math.Pi*float64(at.Hour()*60+at.Minute())/(24*60)) // most at noon
		passed := spam(i, at)
		passed.Sender, passed.Recipients, passed.Event, passed.Action = "friend@partner.example", []string{"office@example.net"}, "accepted", "accept"
		passed.Count, passed.List, passed.Entry, passed.Reason, passed.Reply, passed.Attrs = int(60*busy)+i%7, "", "", "", "250 2.0.0 Ok", nil
		r.Record(passed)
		for j := range int(6*busy) + i%4 {
			r.Record(spam(i*100+j, at.Add(time.Duration(j)*7*time.Second)))
		}
	}
	for i, id := range []string{"K6QZ3RLXWT5B", supplierID} {
		d := spam(0, now.Add(time.Duration(i-2)*time.Minute))
		d.ID, d.Sender, d.Client, d.Helo, d.Recipients = id, supplier, "203.0.113.25:41234", "mail.parts.example", []string{ann}
		refuse(d, "imported", "parts.example", "open relay")
		r.Record(d)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// spam returns a decision about mail that a list stops.
func spam(i int, at time.Time) *decisions.Decision {
	sum := sha256.Sum256(fmt.Append(nil, i))
	d := &decisions.Decision{
		ID: base32.StdEncoding.EncodeToString(sum[:])[:12], Time: at, Last: at, Count: 1, Event: "refused", Level: "INFO", Action: "reject",
		Client: fmt.Sprintf("198.51.100.%d:40025", sum[0]), Helo: "mail.spam.example",
		Recipients: []string{[]string{ann, "office@example.net", "info@example.net", "sales@example.net"}[sum[1]%4]}, Duration: 300 * time.Microsecond,
	}
	switch n := sum[2] % 16; {
	case n < 6:
		d.Sender = fmt.Sprintf("offers%d@mail.spam.example", sum[3]%9)
		refuse(d, "blocked-file", "spam.example", "unsolicited mail")
	case n < 10:
		d.Sender = "news@shop.example"
		refuse(d, "blocked-file", "shop.example", "sold our addresses")
	case n < 14:
		d.Sender = fmt.Sprintf("service@bank%d.phish.example", sum[3]%5)
		refuse(d, "imported", "phish.example", "phishing")
	case n < 15:
		d.Sender = "list@news.example"
		refuse(d, "blocked", "news.example", "asked three times to stop")
	default:
		d.Sender, d.Event, d.Action, d.Reply = "someone@elsewhere.example", "next hop failed", "defer", "451 4.3.0 try again later"
	}
	return d
}

// refuse sets why a decision was made.
func refuse(d *decisions.Decision, list, entry, reason string) {
	d.List, d.Entry, d.Reason = list, entry, reason
	d.Reply = fmt.Sprintf("550 5.7.1 <%s> refused: list %s (%s); id %s; ask postmaster@example.net", d.Sender, list, reason, d.ID)
	d.Attrs = []decisions.Attr{{Key: "tls", Value: "TLS 1.3"}, {Key: "identity", Value: "envelope"}, {Key: "source", Value: "/etc/spamgate/lists/" + list + ".txt:1501"}}
}
