package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"spamgate/internal/shipped"
)

// shippedGate runs a gate with the configuration and lists that ship, copied to
// a directory of its own, on a port of its own.
func shippedGate(t testing.TB) *gate {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "lists"), shipped.Lists()); err != nil {
		t.Fatal(err)
	}
	config := shipped.Config()
	const addr = `addr = "127.0.0.1:2525"`
	if strings.Count(config, addr) != 1 {
		t.Fatalf("config.toml has not one line %s", addr)
	}
	writeFile(t, filepath.Join(dir, "config.toml"), strings.Replace(config, addr, `addr = "127.0.0.1:0"`, 1))
	g := launch(t, dir, exec.Command(binary(t), "serve"))
	listening := regexp.MustCompile(`^ +listening +(127\.0\.0\.1:\d+)$`)
	line := g.log.wait("where it listens", listening.MatchString)
	g.addr = listening.FindStringSubmatch(line)[1]
	return g
}

// TestShipped is a newcomer's first minutes.
func TestShipped(t *testing.T) {
	t.Parallel()
	g := shippedGate(t)
	for _, said := range []string{"lists", "fill ratio", "expected FPR", "next hop   maildir:mail", "swaks -s " + g.addr} {
		g.log.wait(said, func(line string) bool { return strings.Contains(line, said) })
	}
	c := mustDial(t, g.addr)
	message := letter("a@example.com", "clean") + ".\r\n..dots\r\n\xff\r\n"
	if reply := c.mustSend(t, "a@example.com", "you@example.net", message); !strings.HasPrefix(reply, "250 2.0.0 ") {
		t.Errorf("clean mail was answered with %q", reply)
	}
	if reply := c.mustSend(t, "spammer@example.com", "you@example.net", letter("a@example.com", "listed")); !strings.HasPrefix(reply, "550 5.7.1 <spammer@example.com> refused: list blocked (reported three times); id ") {
		t.Errorf("listed mail was answered with %q", reply)
	}
	wantMail(t, g, "a@example.com", message)

	// One line more, and one line less.
	path := filepath.Join(g.dir, "lists", "blocked.txt")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("sh", "-c", `echo 'offers.example  # reported three times' >> "$0"`, path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	reply := waitVerdict(t, g.addr, "x@mail.offers.example", "550")
	wantRefusal(t, reply, "x@mail.offers.example", "blocked", "reported three times")
	writeFile(t, path, string(before))
	waitVerdict(t, g.addr, "x@mail.offers.example", "250")

	// Let someone in now.
	writeFile(t, filepath.Join(g.dir, "lists", "always-allow.txt"), "spammer@example.com\n")
	waitVerdict(t, g.addr, "spammer@example.com", "250")
}

// wantMail wants one message in the Maildir: the trace fields, and behind them
// what was sent, byte for byte.
func wantMail(t testing.TB, g *gate, from, message string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(g.dir, "mail", "new", "*"))
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
	if left, _ := os.ReadDir(filepath.Join(g.dir, "mail", "tmp")); len(left) > 0 {
		t.Errorf("left in tmp: %v", left)
	}
}
