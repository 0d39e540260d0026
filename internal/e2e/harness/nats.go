package harness

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"testing"
)

// NATS is a nats-server process with JetStream.
type NATS struct {
	T     testing.TB
	Addr  string
	Store string // the directory of its store

	config string
	cmd    *exec.Cmd
	out    *Output
}

// StartNATS starts a server, and stops it at the end of the test.
func StartNATS(t testing.TB) *NATS {
	t.Helper()
	n := NewNATS(t, "")
	n.Start()
	return n
}

// NewNATS returns a server that does not run yet, with more lines of configuration. It is
// stopped at the end of the test.
func NewNATS(t testing.TB, config string) *NATS {
	t.Helper()
	n := &NATS{T: t, Addr: FreeAddr(t), Store: filepath.Join(t.TempDir(), "store"), config: config, out: NewOutput(t, "nats-server")}
	t.Cleanup(n.Kill)
	return n
}

// Start starts the server on its port and store, and waits until clients can connect.
func (n *NATS) Start() {
	n.T.Helper()
	path, err := buildNATS()
	if err != nil {
		n.T.Fatal(err)
	}
	file := filepath.Join(filepath.Dir(n.Store), "nats.conf")
	WriteFile(n.T, file, fmt.Sprintf("listen: %q\njetstream { store_dir: %q, sync_interval: always }\n%s", n.Addr, n.Store, n.config))
	n.cmd = exec.Command(path, "-c", file)
	n.cmd.Stdout, n.cmd.Stderr = n.out, n.out
	if err := n.cmd.Start(); err != nil {
		n.T.Fatal(err)
	}
	WaitFor(n.T, "the NATS server listens", func() bool {
		c, err := net.Dial("tcp", n.Addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// Kill kills the server, if it runs. Its store stays.
func (n *NATS) Kill() {
	if n.cmd != nil {
		n.cmd.Process.Kill()
		n.cmd.Wait() // the exit code tells nothing
		n.cmd = nil
	}
}
