package harness

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Program returns the path of a program that the test needs, and skips the test without
// it. pkg is the Debian package that has the program. Mail servers are in /usr/sbin,
// which may not be in PATH.
func Program(t testing.TB, name, pkg string) string {
	t.Helper()
	for _, file := range []string{name, "/usr/sbin/" + name} {
		if path, err := exec.LookPath(file); err == nil {
			return path
		}
	}
	SkipMissing(t, "%s is not installed (Debian: apt-get install %s)", name, pkg)
	return ""
}

// serversEnv is the environment variable that names the folder which .ci/servers fills.
const serversEnv = "SPAMGATE_E2E_SERVERS"

// FetchedFile returns the path of a file or folder that .ci/servers has fetched, and
// skips the test without it.
func FetchedFile(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv(serversEnv)
	if dir == "" {
		SkipMissing(t, "%s is not set: it names the folder that .ci/servers DIR fills, for %s", serversEnv, name)
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		SkipMissing(t, "%v: .ci/servers DIR gets it", err)
	}
	return path
}

// SkipMissing skips a test that the machine lacks something for. If CI=true is set in
// the environment, the test fails instead.
func SkipMissing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// Run runs a program to its end and returns its output and exit code.
func Run(t testing.TB, cmd *exec.Cmd) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatalf("%s: %v", cmd, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// RBLDNSD returns a command that runs rbldnsd at an address, in the foreground. As root it becomes
// nobody, who must be able to read its files.
func RBLDNSD(t testing.TB, addr string, args ...string) *exec.Cmd {
	t.Helper()
	all := []string{"-n", "-b", strings.Replace(addr, ":", "/", 1)}
	if os.Geteuid() == 0 {
		all = append(all, "-u", "nobody")
	}
	return exec.Command(Program(t, "rbldnsd", "rbldnsd"), append(all, args...)...)
}
