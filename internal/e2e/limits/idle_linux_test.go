package limits

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// maxIdleBytes is the memory that an idle connection may take.
const maxIdleBytes = 20 << 10

// crowdVariable makes this test program a crowd: many clients that say EHLO, enter a
// state and wait. They have a process of their own because of its descriptors. The
// variable's value is "address count state".
const crowdVariable = "SPAMGATE_E2E_CROWD"

func init() {
	if what, ok := os.LookupEnv(crowdVariable); ok {
		if err := beCrowd(what); err != nil {
			fmt.Println("crowd:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// beCrowd runs the crowd.
func beCrowd(what string) error {
	var addr, state string
	var count int
	if _, err := fmt.Sscan(what, &addr, &count, &state); err != nil {
		return err
	}
	const workers = 16
	var wg sync.WaitGroup
	clients := make([]*harness.Client, count)
	errs := make(chan error, workers)
	for w := range workers {
		wg.Go(func() {
			for i := w; i < count; i += workers {
				c, err := harness.Dial(addr, fmt.Sprintf("127.1.%d.%d", i/250, 1+i%250))
				if err == nil {
					err = enterState(c, state)
				}
				if err != nil {
					errs <- fmt.Errorf("client %d: %w", i, err)
					return
				}
				clients[i] = c
			}
		})
	}
	wg.Wait()
	select {
	case err := <-errs:
		return err
	default:
	}
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	for _, c := range clients {
		c.Close()
	}
	return nil
}

// enterState brings a client into a state.
func enterState(c *harness.Client, state string) error {
	switch state {
	case "greeted":
		return nil
	case "refused":
		reply, err := c.Verdict("x@spam.example", "b@example.net")
		if err != nil || !strings.HasPrefix(reply, "550 ") {
			return fmt.Errorf("%q, %w", reply, err)
		}
		return nil
	case "served":
		reply, err := c.Send("a@example.com", "b@example.net", []byte(harness.SmallMessage("a@example.com", "crowd")))
		if err != nil || !strings.HasPrefix(reply, "250 ") {
			return fmt.Errorf("%q, %w", reply, err)
		}
		return nil
	}
	return fmt.Errorf("no such state: %q", state)
}

// startCrowd starts a crowd and waits until all its clients are connected.
func startCrowd(t testing.TB, addr string, count int, state string) (leave func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %s", crowdVariable, addr, count, state))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	leave = sync.OnceFunc(func() {
		in.Close()
		io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the crowd: %v", err)
		}
	})
	t.Cleanup(leave)
	reader := bufio.NewReader(out)
	if line, err := reader.ReadString('\n'); line != "ready\n" {
		t.Fatalf("the crowd said %q, %v", line, err)
	}
	return leave
}

// TestIdleConnections has thousands of clients that wait, in three states. Each may take
// only so much memory, and other clients are served meanwhile.
func TestIdleConnections(t *testing.T) {
	count := harness.IfShort(10_000, 300)
	needDescriptors(t, count+200)
	for _, state := range []string{"greeted", "refused", "served"} {
		t.Run(state, func(t *testing.T) {
			sink := smtptest.NewSink(t, smtptest.Config{DropBodies: true})
			// A small filter: it depends on huge pages when the 32 MiB of the classic one become
			// resident.
			g := harness.StartGate(t, harness.Setup{
				NextHop: "smtp://" + sink.Addr(),
				Keys:    map[string]string{"next_hop": noNames, "listen": "max_connections = 0"},
				Tables:  "[filter]\nkind = \"sized\"\n",
			})
			harness.MustDial(t, g.Addr).MustSend(t, "a@example.com", "b@example.net", harness.SmallMessage("a@example.com", "before"))
			pid := g.Process.Pid
			before := harness.ResidentBytes(t, pid)
			leave := startCrowd(t, g.Addr, count, state)
			after := harness.ResidentBytes(t, pid)
			arrived := len(sink.Messages())

			good := harness.MustDialFrom(t, g.Addr, "127.0.0.9")
			for i := range 20 {
				if reply := good.MustSend(t, "a@example.com", "b@example.net", harness.SmallMessage("a@example.com", strconv.Itoa(i))); !strings.HasPrefix(reply, "250 ") {
					t.Errorf("among %d idle clients a message is answered with %q", count, reply)
				}
			}
			if n := len(sink.Messages()) - arrived; n != 20 {
				t.Errorf("%d messages have arrived, want 20", n)
			}
			leave()
			each := (after - before) / int64(count)
			t.Logf("%d connections: %d KiB before, %d KiB with them, %d bytes each", count, before>>10, after>>10, each)
			// With fewer connections the process's own memory would be a large part.
			if each > maxIdleBytes && !harness.RaceEnabled() && !testing.Short() {
				t.Errorf("an idle connection costs %d bytes, more than %d", each, maxIdleBytes)
			}
		})
	}
}

// needDescriptors skips a test if a process may not open that many descriptors.
func needDescriptors(t testing.TB, n int) {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if limit.Max < uint64(n) {
		harness.SkipMissing(t, "a process may have %d descriptors open, the test needs %d (ulimit -Hn)", limit.Max, n)
	}
}
