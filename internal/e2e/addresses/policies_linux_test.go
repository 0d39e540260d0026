package addresses

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// TestRecipientPolicies runs a gate with recipients who have a say: in the configuration and in
// a file, which counts at once when it changes, is held when it is broken, and is found again
// after a reload, a handover and a restart.
func TestRecipientPolicies(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t)
	policies := func(sales string) string {
		return "[[recipient_policy]]\nname = \"vip\"\nmatch = \"file:vip\"\nexempt = true\n" +
			"[[recipient_policy]]\nmatch = [\"sales.example\", \"!boss@sales.example\"]\n" + sales + "\n"
	}
	s := harness.Setup{
		NextHop: "smtp://" + sink.Addr(),
		Tables:  policies(`max_action = "defer"`),
		Files:   map[string]string{"blocked.txt": "sender.example # listed\n", "vip": "ceo@first.example\n@vip.example\n!ann@vip.example\n"},
	}
	dir := s.Dir(t)
	g := harness.LaunchSuccession(t, dir, nil, nil, harness.Binary(t), "serve")
	g.Addr = g.WaitListening()
	vip := filepath.Join(dir, "vip")

	const refused = "550 5.7.1 <a@sender.example> refused: list blocked (listed)"
	for to, want := range map[string]string{
		"ceo@first.example": "250", "ceo+tag@first.example": "250", "bob@vip.example": "250",
		"ann@vip.example": refused, "ann@first.example": refused, "boss@sales.example": refused,
		"ann@eu.sales.example": "451 4.7.1", "postmaster@first.example": "250",
	} {
		wantRcpt(t, g.Addr, to, want)
	}
	harness.WaitFor(t, "the policy in the log", func() bool {
		return len(g.Records("refused", "recipient_policy", "recipient_policy-2", "action", "defer", "list", "blocked")) == 1
	})
	harness.WriteFile(t, vip, "ann@first.example\n")
	wantRcpt(t, g.Addr, "ann@first.example", "250")
	wantRcpt(t, g.Addr, "ceo@first.example", refused)

	held := func(why string, n int) {
		t.Helper()
		harness.WaitFor(t, why, func() bool {
			return len(g.Records("recipients held, their last good version serves", "key", "vip")) == n
		})
		wantRcpt(t, g.Addr, "ann@first.example", "250")
		if r := status(t, g.Gate, "vip"); !strings.Contains(r.Error, why) || r.Entries != 1 {
			t.Errorf("%s: %+v", why, r)
		}
		if v := harness.MetricValue(t, harness.ReadMetrics(t, g.SocketClient(), "http://gate/metrics"), "spamgate_recipient_file_error", "file", "vip"); v != 1 {
			t.Errorf("%s: the metric is %v", why, v)
		}
		g.Command(t, 2, "config", "check")
	}
	harness.WriteFile(t, vip, "")
	held("no entry in it", 1)
	if err := os.Remove(vip); err != nil {
		t.Fatal(err)
	}
	held("no such file", 2)
	harness.WriteFile(t, filepath.Join(dir, "config.toml"), harness.Setup{NextHop: s.NextHop, Tables: policies(`mode = "monitor"`)}.Config())
	g.Signal(syscall.SIGHUP)
	g.WaitNth(1, "reloaded")
	wantRcpt(t, g.Addr, "ann@eu.sales.example", "250")
	wantRcpt(t, g.Addr, "ann@first.example", "250")
	g.HandOver()
	held("no such file", 3)
	harness.WriteFile(t, vip, "# nobody\n")
	wantRcpt(t, g.Addr, "ann@first.example", refused)
	g.Stop()
	g.WantEnded(2)

	var many strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&many, "u%d@many.example\n", i)
	}
	harness.WriteFile(t, vip, many.String())
	again := harness.Serve(t, dir)
	wantRcpt(t, again.Addr, "u1999@many.example", "250")
	harness.WriteFile(t, vip, "@first.example\n")
	harness.WaitFor(t, "the file to be held", func() bool { return status(t, again, "vip").Acceptable })
	again.Lists(t, 0, "accept", "vip")
	wantRcpt(t, again.Addr, "ann@first.example", "250")
	wantRcpt(t, again.Addr, "u1999@many.example", refused)
}
