package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// leastMistakes is how many mistakes testdata/mistakes has at least.
const leastMistakes = 95

// TestMistakes runs config check with each configuration of testdata/mistakes, and
// serve with each that is refused. An archive holds cases; the files that they speak
// of are those of mistakeFiles. A case begins with
//
//	#! LINE KEY | TEXT | TEXT…    an error at that line about that key, with these texts
//	#? LINE KEY | TEXT…           a warning
//	#! escaped                    \xNN is a byte
//	#! nolist                     no list is put at its end
//
// and lines are counted from the one after these. There must be no other error. "-"
// is an error without a line, or without a key.
func TestMistakes(t *testing.T) {
	archives, err := filepath.Glob("testdata/mistakes/*.txt")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no mistakes: %v", err)
	}
	dir := mistakeFiles(t)
	n := 0
	for _, name := range archives {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		n += len(archive.Files)
		for _, f := range archive.Files {
			t.Run(strings.TrimSuffix(filepath.Base(name), ".txt")+"/"+f.Name, func(t *testing.T) {
				m := parseMistake(t, f.Data)
				file := filepath.Join(dir, "config.toml")
				if err := os.WriteFile(file, m.config, 0o600); err != nil {
					t.Fatal(err)
				}
				m.check(t, dir)
			})
		}
	}
	if n < leastMistakes {
		t.Errorf("%d mistakes, want %d", n, leastMistakes)
	}
}

// mistake is a case.
type mistake struct {
	config   []byte
	errors   []complaint
	warnings []complaint
}

// complaint is what is to be said.
type complaint struct {
	line, key string
	texts     []string
}

var byteEscape = regexp.MustCompile(`\\x[0-9a-f]{2}`)

func parseMistake(t *testing.T, data []byte) mistake {
	t.Helper()
	var m mistake
	escaped, list := false, !bytes.Contains(data, []byte("[[list]")) && !bytes.Contains(data, []byte("[list]"))
	for line := range bytes.Lines(data) {
		text := strings.TrimSpace(string(line))
		switch {
		case text == "#! escaped":
			escaped = true
		case text == "#! nolist":
			list = false
		case strings.HasPrefix(text, "#! "):
			m.errors = append(m.errors, parseComplaint(t, text))
		case strings.HasPrefix(text, "#? "):
			m.warnings = append(m.warnings, parseComplaint(t, text))
		default:
			m.config = append(m.config, line...)
		}
	}
	if len(m.errors)+len(m.warnings) == 0 {
		t.Fatal("the case does not say what is to be said")
	}
	if escaped {
		m.config = byteEscape.ReplaceAllFunc(m.config, func(b []byte) []byte {
			n, _ := strconv.ParseUint(string(b[2:]), 16, 8) // two hexadecimal digits
			return []byte{byte(n)}
		})
	}
	if list {
		m.config = append(m.config, "[[list]]\nname = \"blocked\"\npath = \"lists/blocked.txt\"\n"...)
	}
	return m
}

func parseComplaint(t *testing.T, text string) complaint {
	t.Helper()
	parts := strings.Split(text, " | ")
	fields := strings.Fields(parts[0])
	if len(fields) != 3 || len(parts) < 2 {
		t.Fatalf("%q does not say what is to be said", text)
	}
	return complaint{fields[1], fields[2], parts[1:]}
}

// check runs config check and, if that refuses the configuration, serve, which must
// say the same.
func (m mistake) check(t *testing.T, dir string) {
	t.Helper()
	stderr, code := runIn(t, dir, "config", "check")
	if want := 2 * min(len(m.errors), 1); code != want {
		t.Errorf("config check: exit code %d, want %d", code, want)
	}
	var lines, warned []string
	for line := range strings.Lines(stderr) {
		line = strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "spamgate: ")
		if text, ok := strings.CutPrefix(line, "warning: "); ok {
			warned = append(warned, text)
		} else if strings.HasPrefix(line, "config.toml:") {
			lines = append(lines, line)
		} else if !strings.HasPrefix(line, "checking fetches nothing") {
			t.Errorf("config check says %q", line)
		}
	}
	compareComplaints(t, "errors", lines, m.errors)
	compareComplaints(t, "warnings", warned, m.warnings)
	if code == 0 || strings.Contains(stderr, "checking fetches nothing") { // serve would listen, or fetch
		return
	}
	served, code := runIn(t, dir, "serve")
	if code != 2 || !slices.Equal(places(served), places(stderr)) {
		t.Errorf("serve: exit code %d, and says\n%s\nconfig check says\n%s", code, served, stderr)
	}
}

// places are the lines with which errors begin.
func places(stderr string) []string {
	var found []string
	for line := range strings.Lines(stderr) {
		if line = strings.TrimPrefix(line, "spamgate: "); strings.HasPrefix(line, "config.toml:") {
			found = append(found, strings.Join(strings.SplitN(line, ": ", 3)[:2], ": "))
		}
	}
	return found
}

var position = regexp.MustCompile(`^config\.toml:(?:(\d+):\d+:)? (.*)$`)

func compareComplaints(t *testing.T, what string, got []string, want []complaint) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d %s, want %d:\n%s", len(got), what, len(want), strings.Join(got, "\n"))
		return
	}
	for i, w := range want {
		m := position.FindStringSubmatch(got[i])
		line, text := m[1], m[2]
		if line == "" {
			line = "-"
		}
		if w.key != "-" {
			var ok bool
			if text, ok = strings.CutPrefix(text, w.key+": "); !ok {
				t.Errorf("the key is not %s: %s", w.key, got[i])
			}
		}
		if line != w.line {
			t.Errorf("not at line %s: %s", w.line, got[i])
		}
		for _, fragment := range w.texts {
			if !strings.Contains(text, fragment) {
				t.Errorf("without %q: %s", fragment, got[i])
			}
		}
	}
}

// runIn runs spamgate in a directory. It is killed if it does not end by itself.
func runIn(t *testing.T, dir string, args ...string) (stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "spamgate", args...)
	cmd.Dir = dir
	var errs bytes.Buffer
	cmd.Stderr = &errs
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return errs.String(), cmd.ProcessState.ExitCode()
}

// mistakeFiles makes the directory that the configurations are in.
func mistakeFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	write("lists/blocked.txt", "spam.example\n")
	write("lists/more.txt", "bulk.example\n")
	write("afile", "neither list nor certificate\n")
	write("binary", "\x00\x01\x02\x03"+strings.Repeat("\x00\xff", 100))
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	day := 24 * time.Hour
	for name, life := range map[string][2]time.Duration{
		"good": {-day, 90 * day}, "other": {-day, 90 * day}, "expired": {-2 * day, -day}, "future": {day, 90 * day}, "soon": {-day, 3 * day},
	} {
		cert, key := mistakePair(t, life)
		write("tls/"+name+".pem", cert)
		write("tls/"+name+".key", key)
	}
	return dir
}

// mistakePair makes a certificate and its key, in PEM.
func mistakePair(t *testing.T, life [2]time.Duration) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(life[0]),
		NotAfter:     time.Now().Add(life[1]),
		DNSNames:     []string{"gate.example"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return block("CERTIFICATE", der), block("PRIVATE KEY", keyDER)
}
