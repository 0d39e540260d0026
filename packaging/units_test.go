// Package packaging holds what a package installs beside the program: systemd units with
// their user and directories. Its tests ask systemd about them.
package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// systemdOutput runs one of systemd's programs, which must succeed, and returns what it
// prints.
func systemdOutput(t *testing.T, name string, args ...string) string {
	t.Helper()
	stdout, stderr, code := harness.Run(t, exec.Command(harness.Program(t, name, "systemd"), args...))
	if code != 0 || strings.Contains(stderr, "ignoring") { // an unknown setting is ignored with a notice
		t.Fatalf("%s %s: exit code %d\n%s%s", name, strings.Join(args, " "), code, stdout, stderr)
	}
	return stdout
}

// copyFile copies a file of this directory to a new one.
func copyFile(t *testing.T, to, from string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	harness.WriteFile(t, to, string(text))
}

var overall = regexp.MustCompile(`Overall exposure level for \S+: ([\d.]+)`)

// TestExposure compares systemd's score of the units, from 0 (safe) to 10, with the limits
// that docs/installation.md states.
func TestExposure(t *testing.T) {
	for _, c := range []struct {
		name   string
		unit   string
		dropIn string
		limit  float64
	}{
		{"as shipped", "spamgate.service", "", 1.5},
		{"with listeners.conf", "spamgate.service", "listeners.conf", 1.7},
		{"spamgate-fleetd", "spamgate-fleetd.service", "", 1.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			unit := filepath.Join(t.TempDir(), c.unit)
			copyFile(t, unit, filepath.Join("systemd", c.unit))
			if c.dropIn != "" {
				copyFile(t, filepath.Join(unit+".d", c.dropIn), filepath.Join("systemd", c.dropIn))
			}
			out := systemdOutput(t, "systemd-analyze", "security", "--offline=true", "--no-pager", unit)
			m := overall.FindStringSubmatch(out)
			if m == nil {
				t.Fatalf("no score:\n%s", out)
			}
			score, err := strconv.ParseFloat(m[1], 64)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("score %.1f, limit %.1f", score, c.limit)
			if score > c.limit {
				t.Errorf("score %.1f, want at most %.1f:\n%s", score, c.limit, out)
			}
		})
	}
}

// TestSysusersTmpfiles has systemd make the user and the directories in an empty root.
func TestSysusersTmpfiles(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("making users, and directories of theirs, needs root")
	}
	root := t.TempDir()
	for _, kind := range []string{"sysusers", "tmpfiles"} {
		copyFile(t, filepath.Join(root, "usr/lib", kind+".d/spamgate.conf"), kind+"/spamgate.conf")
	}
	if err := os.Mkdir(filepath.Join(root, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 { // an upgrade runs both again
		systemdOutput(t, "systemd-sysusers", "--root="+root)
		systemdOutput(t, "systemd-tmpfiles", "--root="+root, "--create")
	}
	passwd, err := os.ReadFile(filepath.Join(root, "etc/passwd"))
	if err != nil {
		t.Fatal(err)
	}
	user := regexp.MustCompile(`(?m)^spamgate:[^:]*:(\d+):(\d+):[^:]*:/var/lib/spamgate:\S*nologin$`).FindStringSubmatch(string(passwd))
	if user == nil {
		t.Fatalf("no user spamgate without a shell:\n%s", passwd)
	}
	for dir, mode := range map[string]string{"lib": "700", "log": "750"} {
		out, stderr, code := harness.Run(t, exec.Command("stat", "--format=%u:%g %a", filepath.Join(root, "var", dir, "spamgate")))
		if want := user[1] + ":" + user[2] + " " + mode + "\n"; code != 0 || out != want {
			t.Errorf("/var/%s/spamgate: owner and mode %q %s, want %q", dir, out, stderr, want)
		}
	}
}
