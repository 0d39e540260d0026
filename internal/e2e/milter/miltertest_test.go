package milter

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestMiltertest runs the scripts in testdata with miltertest, the milter library's own test
// program. A script fails with an error of Lua.
func TestMiltertest(t *testing.T) {
	program := filepath.Join(harness.FetchedFile(t, "miltertest"), "usr/bin/miltertest")
	libraries, err := filepath.Glob(filepath.Join(harness.FetchedFile(t, "miltertest"), "usr/lib/*-linux-gnu"))
	if err != nil || len(libraries) != 1 {
		t.Fatal(libraries, err)
	}
	_, addr := startGate(t, "exempt_authenticated = true\n")
	host, port, _ := net.SplitHostPort(addr)
	scripts, err := filepath.Glob("testdata/*.lua")
	if err != nil || len(scripts) == 0 {
		t.Fatal(scripts, err)
	}
	for _, script := range scripts {
		t.Run(filepath.Base(script), func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(program, "-D", "socket=inet:"+port+"@"+host, "-s", script)
			cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+libraries[0])
			if stdout, stderr, code := harness.Run(t, cmd); code != 0 {
				t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
			}
		})
	}
}
