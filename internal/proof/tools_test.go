package proof

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// checkSigned verifies a message that another program has signed, and the same message with
// another subject and with another body.
func checkSigned(t *testing.T, w *world, message string) {
	t.Helper()
	for _, c := range []struct{ name, message, want string }{
		{"as it was signed", message, "proven: dkim: a valid signature of partner.example"},
		{"forwarded", "Received: from a by b; Mon, 23 Nov 2026 06:00:01 +0000\r\n" + message, "proven: dkim: a valid signature of partner.example"},
		{"another subject", strings.Replace(message, "Subject: h", "Subject: H", 1), notValid + "signature did not verify"},
		{"another body", strings.Replace(message, "Hello", "Hallo", 1), notValid + "body hash did not verify"},
	} {
		for _, size := range []int{1, 1 << 20} {
			if _, got := w.verifyAll(c.message, "ann@partner.example", size); !strings.HasPrefix(say(got), c.want) {
				t.Errorf("%s: %s, want %s\n%s", c.name, say(got), c.want, c.message)
			}
		}
	}
}

// quoted finds the strings of a record in a zone file.
var quoted = regexp.MustCompile(`"([^"]*)"`)

// publishZone publishes a record from a zone file, under the selector "s".
func (w *world) publishZone(file string) {
	w.Helper()
	var text strings.Builder
	for _, part := range quoted.FindAllStringSubmatch(string(must(os.ReadFile(file))), -1) {
		text.WriteString(part[1])
	}
	w.AddText("s._domainkey.partner.example", text.String(), 60)
}

// run runs a program and returns its output.
func run(t *testing.T, input string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(input)
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, problems.String())
	}
	return string(out)
}

// milterScript is what miltertest sends to OpenDKIM: the letter. It prints the signature.
const milterScript = `
conn = mt.connect("inet:%s@127.0.0.1", 100, 0.1)
if conn == nil then error("opendkim does not listen") end
mt.conninfo(conn, "localhost", "127.0.0.1")
mt.macro(conn, SMFIC_MAIL, "i", "1")
mt.mailfrom(conn, "<ann@partner.example>")
mt.rcptto(conn, "<bob@example.net>")
%smt.eoh(conn)
mt.bodystring(conn, %q)
mt.eom(conn)
print(mt.getheader(conn, "DKIM-Signature", 0))
mt.disconnect(conn)
`

// TestOpenDKIM verifies what OpenDKIM signs, with a key of its own.
func TestOpenDKIM(t *testing.T) {
	daemon := harness.Program(t, "opendkim", "opendkim")
	genkey := harness.Program(t, "opendkim-genkey", "opendkim-tools")
	miltertest := harness.Program(t, "miltertest", "miltertest")
	testmsg := harness.Program(t, "opendkim-testmsg", "opendkim-tools")
	dir := t.TempDir()
	run(t, "", genkey, "-D", dir, "-d", "partner.example", "-s", "s", "-b", "1024")
	w := newWorld(t)
	w.publishZone(filepath.Join(dir, "s.txt"))
	key := filepath.Join(dir, "s.private")

	header, body, _ := strings.Cut(letter, "\r\n\r\n")
	fields := ""
	for line := range strings.SplitSeq(header, "\r\n") {
		name, value, _ := strings.Cut(line, ": ")
		fields += fmt.Sprintf("mt.header(conn, %q, %q)\n", name, value)
	}
	for _, form := range []string{"relaxed/relaxed", "simple/simple"} {
		t.Run(form, func(t *testing.T) {
			_, port, _ := net.SplitHostPort(harness.FreeAddr(t))
			config := filepath.Join(t.TempDir(), "opendkim.conf")
			harness.WriteFile(t, config, fmt.Sprintf("Domain partner.example\nKeyFile %s\nSelector s\nMode s\nCanonicalization %s\nSocket inet:%s@127.0.0.1\nRequireSafeKeys no\n", key, form, port))
			cmd := exec.Command(daemon, "-f", "-x", config)
			out := harness.NewOutput(t, "opendkim")
			cmd.Stdout, cmd.Stderr = out, out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Wait()
			defer cmd.Process.Kill()
			script := filepath.Join(t.TempDir(), "sign.lua")
			harness.WriteFile(t, script, fmt.Sprintf(milterScript, port, fields, body))
			value := strings.TrimSpace(run(t, "", miltertest, "-s", script))
			checkSigned(t, w, "DKIM-Signature: "+strings.ReplaceAll(value, "\n", "\r\n")+"\r\n"+letter)
		})
	}

	// opendkim-testmsg signs with SHA-1, which RFC 8301 forbids to accept.
	weak := run(t, strings.ReplaceAll(letter, "\r\n", "\n"), testmsg, "-d", "partner.example", "-s", "s", "-k", key)
	_, got := w.verifyAll(strings.ReplaceAll(weak, "\n", "\r\n"), "ann@partner.example", 100)
	if say(got) != notValid+"inappropriate hash algorithm" { // the key is for SHA-256 only
		t.Error(say(got))
	}
}

// TestDKIMPy verifies what dkimpy signs, with keys of its own.
func TestDKIMPy(t *testing.T) {
	sign := harness.Program(t, "dkimsign", "python3-dkim")
	newKey := harness.Program(t, "dknewkey", "python3-dkim")
	for _, kind := range []string{"rsa", "ed25519"} {
		key := filepath.Join(t.TempDir(), "s")
		run(t, "", newKey, "--ktype", kind, key)
		w := newWorld(t)
		w.AddText("s._domainkey.partner.example", strings.TrimSpace(string(must(os.ReadFile(key+".dns")))), 60)
		for _, form := range []string{"relaxed", "simple"} {
			message := run(t, letter, sign, "--signalg", kind+"-sha256", "--hcanon", form, "--bcanon", form, "s", "partner.example", key+".key")
			checkSigned(t, w, message)
		}
	}
}
