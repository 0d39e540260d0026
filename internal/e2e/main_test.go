// Package e2e holds tests of the real binary, run as a process with files of
// its own, between real clients (smtp-source, swaks, curl, Python's smtplib,
// nodemailer, Postfix and Exim) and real next hops (Postfix, Exim, OpenSMTPD,
// Dovecot, a byte-exact sink, a Maildir).
//
// A test whose tools are not installed is skipped. Where CI=true is set in the
// environment, it fails. The servers that cannot be installed beside Postfix are
// fetched by .ci/servers, and SPAMGATE_E2E_SERVERS names their folder; with
// SPAMGATE_E2E_FULL=1 the ledger has its full size, 20,000 messages, and 200 gates
// are killed while they build.
package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"
)

// waitLimit is how long a test waits for a reply, and lateLimit for what takes work,
// such as a start or a list that goes live, in a gate that may have the race detector
// on a machine that has much else to do. They are only reached when something hangs.
const (
	waitLimit = 30 * time.Second
	lateLimit = 2 * time.Minute
)

// buildDir holds the binary.
var buildDir string

// atOnce is how many tests run at a time, at least, unless -parallel says it: they
// wait for servers more than they compute.
const atOnce = 6

func TestMain(m *testing.M) {
	flag.Parse()
	const parallel = "test.parallel"
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == parallel })
	if !said {
		flag.Set(parallel, strconv.Itoa(max(atOnce, runtime.GOMAXPROCS(0))))
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "spamgate-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	buildDir = dir
	return m.Run()
}

// build makes the binary, with the race detector where the tests have it.
var build = sync.OnceValues(func() (string, error) {
	bin := filepath.Join(buildDir, "spamgate")
	args := []string{"build", "-buildvcs=false", "-o", bin}
	if raceEnabled {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, "spamgate/cmd/spamgate")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return bin, nil
})

func binary(t testing.TB) string {
	t.Helper()
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// tool finds a program that the test needs; pkg is the Debian package that has
// it. Mail servers live in /usr/sbin, which is not on everyone's path.
func tool(t testing.TB, name, pkg string) string {
	t.Helper()
	for _, file := range []string{name, "/usr/sbin/" + name} {
		if path, err := exec.LookPath(file); err == nil {
			return path
		}
	}
	missing(t, "%s is not installed (Debian: apt-get install %s)", name, pkg)
	return ""
}

// missing skips a test for what the machine lacks, except in CI, which has to
// have it.
func missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// run runs a program to its end and returns its output and exit code.
func run(t testing.TB, cmd *exec.Cmd) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatalf("%s: %v", cmd, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// scale is the size of a test's load: a tenth with -short.
func scale(n int) int {
	if testing.Short() {
		return max(1, n/10)
	}
	return n
}

// short is a number, or another one with -short.
func short(n, instead int) int {
	if testing.Short() {
		return instead
	}
	return n
}

// fullEnv names the environment variable with which the ledger has its full size.
const fullEnv = "SPAMGATE_E2E_FULL"

// amount is the size of a part of the ledger: the usual one, or the full one.
func amount(usual, full int) int {
	if os.Getenv(fullEnv) != "" {
		return full
	}
	return usual
}

// writeFile makes a file readable for everyone, and the directories above it. The
// file is there at once and as a whole: a gate that looks while this process waits
// for its turn finds the old one. (For other ways see rewriters.)
func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}
