package servers

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"spamgate/internal/defaultconfig"
	"spamgate/internal/e2e/harness"
)

// shippedGate starts a gate with the shipped configuration and lists, copied to a
// directory of its own, on a free port.
func shippedGate(t testing.TB) *harness.Gate {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "lists"), defaultconfig.Lists()); err != nil {
		t.Fatal(err)
	}
	config := defaultconfig.Config()
	const addr = `addr = "127.0.0.1:2525"`
	if strings.Count(config, addr) != 1 {
		t.Fatalf("config.toml has not one line %s", addr)
	}
	harness.WriteFile(t, filepath.Join(dir, "config.toml"), strings.Replace(config, addr, `addr = "127.0.0.1:0"`, 1))
	g := harness.Launch(t, dir, exec.Command(harness.Binary(t), "serve"))
	listening := regexp.MustCompile(`^ +listening +(127\.0\.0\.1:\d+)$`)
	line := g.Log.Wait("where it listens", listening.MatchString)
	g.Addr = listening.FindStringSubmatch(line)[1]
	return g
}

// TestShipped follows a newcomer's first minutes.
func TestShipped(t *testing.T) {
	t.Parallel()
	g := shippedGate(t)
	for _, text := range []string{"lists", "fill ratio", "expected FPR", "next hop   maildir:mail", "swaks -s " + g.Addr} {
		g.Log.Wait(text, func(line string) bool { return strings.Contains(line, text) })
	}
	c := harness.MustDial(t, g.Addr)
	message := harness.SmallMessage("a@example.com", "clean") + ".\r\n..dots\r\n\xff\r\n"
	if reply := c.MustSend(t, "a@example.com", "you@example.net", message); !strings.HasPrefix(reply, "250 2.0.0 ") {
		t.Errorf("clean mail was answered with %q", reply)
	}
	if reply := c.MustSend(t, "spammer@example.com", "you@example.net", harness.SmallMessage("a@example.com", "listed")); !strings.HasPrefix(reply, "550 5.7.1 <spammer@example.com> refused: list blocked (reported three times); id ") {
		t.Errorf("listed mail was answered with %q", reply)
	}
	wantMail(t, g, "a@example.com", message)

	// Add a line to a list, and remove it.
	path := filepath.Join(g.Dir, "lists", "blocked.txt")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("sh", "-c", `echo 'offers.example  # reported three times' >> "$0"`, path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	reply := harness.WaitVerdict(t, g.Addr, "x@mail.offers.example", "550")
	harness.WantRefusal(t, reply, "x@mail.offers.example", "blocked", "reported three times")
	harness.WriteFile(t, path, string(before))
	harness.WaitVerdict(t, g.Addr, "x@mail.offers.example", "250")

	// Allow a listed sender.
	harness.WriteFile(t, filepath.Join(g.Dir, "lists", "always-allow.txt"), "spammer@example.com\n")
	harness.WaitVerdict(t, g.Addr, "spammer@example.com", "250")
}

// wantMail checks that the Maildir has one message: the trace fields, and then exactly
// what was sent.
func wantMail(t testing.TB, g *harness.Gate, from, message string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(g.Dir, "mail", "new", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("mail in the Maildir: %q, %v", files, err)
	}
	got, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	trace, ok := strings.CutSuffix(string(got), message)
	if !ok {
		t.Errorf("the mail arrived changed:\n%q", got)
	}
	if !strings.HasPrefix(trace, "Return-Path: <"+from+">\r\n") || !strings.Contains(trace, "Received: from client.example") {
		t.Errorf("in front of the message: %q", trace)
	}
	if left, _ := os.ReadDir(filepath.Join(g.Dir, "mail", "tmp")); len(left) > 0 {
		t.Errorf("left in tmp: %v", left)
	}
}
