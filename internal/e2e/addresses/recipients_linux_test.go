package addresses

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"spamgate/internal/admin"
	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// wantRcpt waits until a recipient gets a reply.
func wantRcpt(t *testing.T, addr, to, prefix string) {
	t.Helper()
	reply := ""
	harness.WaitFor(t, fmt.Sprintf("%s: %s", to, prefix), func() bool {
		c := harness.MustDial(t, addr)
		defer c.Close()
		var err error
		if reply, err = c.Verdict("a@sender.example", to); err != nil {
			t.Fatal(err)
		}
		return strings.HasPrefix(reply, prefix)
	})
}

// status returns the state of a file with recipients.
func status(t *testing.T, g *harness.Gate, name string) admin.RecipientFile {
	t.Helper()
	var s admin.Status
	if err := json.Unmarshal([]byte(g.Lists(t, 0, "status", name, "--json")), &s); err != nil || len(s.Recipients) != 1 {
		t.Fatalf("%v, %+v", err, s.Recipients)
	}
	return s.Recipients[0]
}

// TestRecipientFiles runs a gate whose recipients stand in files: a new customer counts
// without a reload, and a file that is broken, empty or gone changes nothing, also over a
// handover, a restart and a reload.
func TestRecipientFiles(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t)
	s := harness.Setup{
		NextHop: "smtp://" + sink.Addr(),
		Tables:  "[policy]\nrecipient_domains = \"file:domains\"\nvalid_recipients = \"file:valid\"\n",
		Files:   map[string]string{"domains": "first.example\n", "valid": "ann@first.example OK\n@new.example OK\n"},
	}
	dir := s.Dir(t)
	g := harness.LaunchSuccession(t, dir, nil, nil, harness.Binary(t), "serve")
	g.Addr = g.WaitListening()
	domains, valid := filepath.Join(dir, "domains"), filepath.Join(dir, "valid")

	wantRcpt(t, g.Addr, "ann@first.example", "250")
	wantRcpt(t, g.Addr, "bob@first.example", "550 5.1.1 <bob@first.example> no such recipient here")
	wantRcpt(t, g.Addr, "bob@new.example", "550 5.7.1 <bob@new.example> relay access denied")
	harness.WriteFile(t, domains, "first.example\nnew.example # a new customer\n")
	wantRcpt(t, g.Addr, "bob@new.example", "250")
	harness.WriteFile(t, valid, "@first.example\n@new.example\n")
	wantRcpt(t, g.Addr, "bob@first.example", "250")

	// held wants a broken version to change nothing, and to be shown.
	held := func(why string, n int) {
		t.Helper()
		harness.WaitFor(t, why, func() bool {
			return len(g.Records("recipients held, their last good version serves", "level", "ERROR")) == n
		})
		wantRcpt(t, g.Addr, "bob@new.example", "250")
		if r := status(t, g.Gate, "recipient_domains"); !strings.Contains(r.Error, why) || r.Entries != 2 || r.ErrorSince == nil {
			t.Errorf("%s: %+v", why, r)
		}
		if text := g.Lists(t, 0, "status"); !strings.Contains(text, "its last good version serves: ") {
			t.Error(text)
		}
		if v := harness.MetricValue(t, harness.ReadMetrics(t, g.SocketClient(), "http://gate/metrics"), "spamgate_recipient_file_error", "file", "recipient_domains"); v != 1 {
			t.Errorf("%s: the metric is %v", why, v)
		}
		g.Command(t, 1, "health")
		g.Command(t, 2, "config", "check")
	}
	harness.WriteFile(t, domains, "")
	held("no entry in it", 1)
	harness.WriteFile(t, domains, "<html>not found</html>\n")
	held("too many invalid lines", 2)
	if err := os.Remove(domains); err != nil {
		t.Fatal(err)
	}
	held("no such file", 3)
	g.Signal(syscall.SIGHUP)
	g.WaitNth(1, "reloaded")
	g.HandOver()
	held("no such file", 4)
	g.Stop()
	g.WantEnded(2)

	again := harness.Serve(t, dir)
	wantRcpt(t, again.Addr, "bob@new.example", "250")
	if r := status(t, again, "recipient_domains"); r.Error == "" || r.Entries != 2 {
		t.Errorf("after a restart: %+v", r)
	}
	harness.WriteFile(t, domains, "first.example\n")
	wantRcpt(t, again.Addr, "bob@new.example", "550 5.7.1")
	if r := status(t, again, "recipient_domains"); r.Error != "" || r.Entries != 1 {
		t.Errorf("mended: %+v", r)
	}

	// A reload replaces the files by arrays, and back.
	array := s
	array.Tables = "[policy]\nrecipient_domains = [\"third.example\"]\nvalid_recipients = [\"ann@third.example\"]\n"
	for i, config := range []harness.Setup{array, s} {
		harness.WriteFile(t, filepath.Join(dir, "config.toml"), config.Config())
		again.Signal(syscall.SIGHUP)
		harness.WaitFor(t, "the reload", func() bool { return len(again.Records("reloaded")) > i })
		for to, want := range map[string][2]string{
			"ann@third.example": {"250", "550 5.7.1"}, "bob@third.example": {"550 5.1.1", "550 5.7.1"}, "ann@first.example": {"550 5.7.1", "250"},
		} {
			wantRcpt(t, again.Addr, to, want[i])
		}
	}
}

// TestRecipientsAccepted wants a file that shrinks to be held until somebody accepts it, in
// a running gate and without one.
func TestRecipientsAccepted(t *testing.T) {
	t.Parallel()
	file := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "d%d.example\n", i)
		}
		return b.String()
	}
	g := harness.StartGate(t, harness.Setup{
		NextHop: "smtp://" + smtptest.NewSink(t).Addr(),
		Tables:  "[policy]\nrecipient_domains = \"file:domains\"\n",
		Files:   map[string]string{"domains": file(2000)},
	})
	domains := filepath.Join(g.Dir, "domains")
	g.Lists(t, 2, "accept", "recipient_domains")
	held := func(n int) {
		harness.WaitFor(t, "a held version", func() bool { return len(g.Records("recipients held, their last good version serves")) == n })
	}
	harness.WriteFile(t, domains, "# none\n")
	held(1)
	text := g.Lists(t, 2, "accept", "recipient_domains")
	if !strings.Contains(text, "recipient_domains cannot be accepted as it is: ") || strings.Contains(text, "nothing is held") {
		t.Error(text)
	}
	harness.WriteFile(t, domains, file(100))
	held(2)
	wantRcpt(t, g.Addr, "a@d1999.example", "250")
	if text := g.Lists(t, 0, "accept", "recipient_domains", "--dry-run"); !strings.Contains(text, "100 entries; 2,000 before") {
		t.Error(text)
	}
	g.Lists(t, 0, "accept", "recipient_domains", "--reason", "customers left")
	wantRcpt(t, g.Addr, "a@d1999.example", "550 5.7.1")
	harness.WriteFile(t, domains, file(2000))
	wantRcpt(t, g.Addr, "a@d1999.example", "250")
	g.Stop()

	harness.WriteFile(t, domains, file(100))
	if text := g.Lists(t, 0, "accept", "recipient_domains", "--reason", "again"); !strings.Contains(text, "100 entries; 2,000 before") {
		t.Error(text)
	}
	if text := g.Lists(t, 0, "changes"); !strings.Contains(text, "customers left") || !strings.Contains(text, "again") {
		t.Errorf("the audit log: %s", text)
	}
	again := harness.Serve(t, g.Dir)
	wantRcpt(t, again.Addr, "a@d1999.example", "550 5.7.1")
	wantRcpt(t, again.Addr, "a@d99.example", "250")
}
