package e2e

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

	"spamgate/internal/smtptest"
)

// idleBytes is what an idle connection may cost the gate.
const idleBytes = 20 << 10

// crowdVariable makes this test binary a crowd: clients that have said EHLO, and
// some more, and wait. They have a process of their own for the sake of its
// descriptors. Its value is "address count state".
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

func beCrowd(what string) error {
	var addr, state string
	var count int
	if _, err := fmt.Sscan(what, &addr, &count, &state); err != nil {
		return err
	}
	const workers = 16
	var wg sync.WaitGroup
	clients := make([]*client, count)
	errs := make(chan error, workers)
	for w := range workers {
		wg.Go(func() {
			for i := w; i < count; i += workers {
				c, err := dial(addr, fmt.Sprintf("127.1.%d.%d", i/250, 1+i%250))
				if err == nil {
					err = c.become(state)
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

// become brings a client into the state in which it is to wait.
func (c *client) become(state string) error {
	switch state {
	case "greeted":
		return nil
	case "refused":
		reply, err := c.verdict("x@spam.example", "b@example.net")
		if err != nil || !strings.HasPrefix(reply, "550 ") {
			return fmt.Errorf("%q, %w", reply, err)
		}
		return nil
	case "served":
		reply, err := c.send("a@example.com", "b@example.net", []byte(letter("a@example.com", "crowd")))
		if err != nil || !strings.HasPrefix(reply, "250 ") {
			return fmt.Errorf("%q, %w", reply, err)
		}
		return nil
	}
	return fmt.Errorf("no such state: %q", state)
}

// startCrowd has a crowd come, and returns once all are there.
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
	said := bufio.NewReader(out)
	if line, err := said.ReadString('\n'); line != "ready\n" {
		t.Fatalf("the crowd said %q, %v", line, err)
	}
	return leave
}

// TestIdleConnections has thousands of clients that wait, in three states. They
// must not cost more than their due, and others are served meanwhile.
func TestIdleConnections(t *testing.T) {
	count := short(10_000, 300)
	needDescriptors(t, count+200)
	for _, state := range []string{"greeted", "refused", "served"} {
		t.Run(state, func(t *testing.T) {
			sink := smtptest.NewSink(t, smtptest.Config{DropBodies: true})
			// The classic filter's 32 MiB become resident some time after the start, or not,
			// as huge pages can be had: a filter of the list's size leaves them out.
			g := startGate(t, setup{
				nextHop: "smtp://" + sink.Addr(),
				keys:    map[string]string{"next_hop": noNames, "listen": "max_connections = 0"},
				more:    "[filter]\nkind = \"sized\"\n",
			})
			mustDial(t, g.addr).mustSend(t, "a@example.com", "b@example.net", letter("a@example.com", "before"))
			pid := g.process.Pid
			before := resident(t, pid)
			leave := startCrowd(t, g.addr, count, state)
			after := resident(t, pid)
			arrived := len(sink.Messages())

			good := mustDialFrom(t, g.addr, "127.0.0.9")
			for i := range 20 {
				if reply := good.mustSend(t, "a@example.com", "b@example.net", letter("a@example.com", strconv.Itoa(i))); !strings.HasPrefix(reply, "250 ") {
					t.Errorf("among %d idle clients a message is answered with %q", count, reply)
				}
			}
			if n := len(sink.Messages()) - arrived; n != 20 {
				t.Errorf("%d messages have arrived, want 20", n)
			}
			leave()
			each := (after - before) / int64(count)
			t.Logf("%d connections: %d KiB before, %d KiB with them, %d bytes each", count, before>>10, after>>10, each)
			// Of fewer connections what the process takes by itself would be a large part.
			if each > idleBytes && !raceEnabled && !testing.Short() {
				t.Errorf("an idle connection costs %d bytes, more than %d", each, idleBytes)
			}
		})
	}
}

// needDescriptors skips a test where a process may not have so many.
func needDescriptors(t testing.TB, n int) {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if limit.Max < uint64(n) {
		missing(t, "a process may have %d descriptors open, the test needs %d (ulimit -Hn)", limit.Max, n)
	}
}
