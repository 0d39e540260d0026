package limits

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// soakVariable is the environment variable with the length of the soak, such as "20m".
const soakVariable = "SPAMGATE_SOAK"

const (
	defaultSoak = 10 * time.Second
	shortSoak   = 5 * time.Second // with -short
)

// soakRows is the number of rows of the table that a soak prints.
const soakRows = 12

// TestSoak loads a gate with all kinds of messages, while its lists change every second
// and its configuration is reloaded now and then. In the end every message that was
// answered with 250 is at the next hop once, and no other, and what the gate uses has
// not grown. It prints a table for docs/reliability.md.
func TestSoak(t *testing.T) {
	length := defaultSoak
	if testing.Short() {
		length = shortSoak
	}
	if text := os.Getenv(soakVariable); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil || length < defaultSoak {
			t.Fatalf("%s=%s: want a duration of at least %v", soakVariable, text, defaultSoak)
		}
	}
	sink := smtptest.NewSink(t, smtptest.Config{DropBodies: true, Extensions: append(smtptest.DefaultExtensions, "CHUNKING")})
	cert, key := harness.NewPEM(t, "gate.example", 1)
	g := harness.StartGate(t, harness.Setup{
		NextHop: "smtp://" + sink.Addr(),
		Keys: map[string]string{
			"listen":   "tls = \"starttls\"\ntls_cert = \"gate.pem\"\ntls_key = \"gate.key\"",
			"next_hop": noNames,
		},
		Lists: harness.RewriteLists,
		Files: map[string]string{
			"gate.pem": cert, "gate.key": key,
			"lists/blocked.txt": harness.VersionText("blocked", 0),
			"lists/tagged.txt":  harness.VersionText("tagged", 0),
		},
	})
	g.Log.KeepOnly(func(line string) bool {
		return strings.Contains(line, `"msg":"state"`) || !strings.Contains(line, `"level":"INFO"`)
	})
	harness.WaitOffered(t, g.Addr, "CHUNKING")
	s := &soak{t: t, gate: g, done: make(chan struct{}), outcomes: map[string]outcome{}}
	s.run(length)

	if bad := g.Records("reload failed, nothing has changed"); len(bad) > 0 {
		t.Errorf("a reload failed: %v", bad[0])
	}
	for line := range strings.Lines(g.Log.String()) {
		if harness.ParseRecord(line).Text("level") == "ERROR" {
			t.Errorf("in the log: %s", line)
		}
	}
	s.checkLedger(sink)
	s.checkFlat()
	s.print()
}

// A soak is one run.
type soak struct {
	t       testing.TB
	gate    *harness.Gate
	done    chan struct{}
	samples []soakSample
	swaps   int
	reloads int

	mu       sync.Mutex
	outcomes map[string]outcome // of the messages, by sender
}

// An outcome is what has become of a message.
type outcome int

const (
	soakRefused outcome = iota // or the client has closed the connection
	soakTaken
)

// A soakSample is what the gate uses at a time.
type soakSample struct {
	elapsed     time.Duration
	messages    int
	resident    int64
	descriptors int
	goroutines  int
	generation  int
}

func (s *soak) run(length time.Duration) {
	var load sync.WaitGroup
	for n, kind := range soakKinds {
		load.Go(func() { s.send(n, kind) })
	}
	load.Go(s.swapLists)

	began := time.Now()
	interval := length / (3 * soakRows)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for i := 1; time.Since(began) < length || i <= soakRows; i++ {
		<-tick.C
		s.sample(time.Since(began))
		if i%5 == 0 {
			s.gate.Signal(syscall.SIGHUP)
			s.reloads++
		}
	}
	close(s.done)
	load.Wait()
}

// sample asks the gate and the system what the gate uses.
func (s *soak) sample(elapsed time.Duration) {
	pid := s.gate.Process.Pid
	n := len(s.samples) + 1
	s.gate.Signal(syscall.SIGUSR1)
	state := harness.ParseRecord(s.gate.Log.Wait(fmt.Sprintf("state %d", n), func(line string) bool {
		if harness.ParseRecord(line).Matches("state", nil) {
			n--
			return n == 0
		}
		return false
	}))
	number := func(key string) int { f, _ := state[key].(float64); return int(f) }
	s.mu.Lock()
	messages := len(s.outcomes)
	s.mu.Unlock()
	s.samples = append(s.samples, soakSample{
		elapsed: elapsed, messages: messages,
		resident: harness.ResidentBytes(s.t, pid), descriptors: harness.Descriptors(s.t, pid),
		goroutines: number("goroutines"), generation: number("generation"),
	})
}

// swapLists replaces both lists every second, by renaming.
func (s *soak) swapLists() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for version := 1; ; version++ {
		select {
		case <-s.done:
			return
		case <-tick.C:
		}
		for _, name := range []string{"blocked", "tagged"} {
			path := filepath.Join(s.gate.Dir, "lists", name)
			err := os.WriteFile(path+".new", []byte(harness.VersionText(name, version)), 0o644)
			if err == nil {
				err = os.Rename(path+".new", path+".txt")
			}
			if err != nil {
				s.t.Error(err)
				return
			}
		}
		s.swaps++
	}
}

// soakPause is the pause of a client between two messages. The soak does not measure
// speed.
const soakPause = 20 * time.Millisecond

// send is one client. It sends messages of its kind until the end of the soak.
func (s *soak) send(n int, kind soakKind) {
	c := &soakClient{addr: s.gate.Addr, from: fmt.Sprintf("127.0.%d.1", 10+n)}
	defer func() { c.close() }()
	tick := time.NewTicker(soakPause)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-s.done:
			return
		case <-tick.C:
		}
		sender := fmt.Sprintf("k%d.%d@%s", n, i, kind.domain)
		became, err := kind.send(c, sender)
		if err != nil {
			s.t.Errorf("%s: %s: %v", kind.name, sender, err)
			return
		}
		s.mu.Lock()
		s.outcomes[sender] = became
		s.mu.Unlock()
	}
}

// checkLedger checks that the accepted messages are at the next hop once, and no others.
func (s *soak) checkLedger(sink *smtptest.Sink) {
	copies := map[string]int{}
	for _, m := range sink.Messages() {
		from, _, _ := strings.Cut(strings.TrimPrefix(m.Mail, "MAIL FROM:<"), ">")
		copies[from]++
	}
	taken := 0
	for sender, became := range s.outcomes {
		want := 0
		if became == soakTaken {
			want = 1
			taken++
		}
		if copies[sender] != want {
			s.t.Errorf("%s: %d copies, want %d", sender, copies[sender], want)
		}
		delete(copies, sender)
	}
	if len(copies) > 0 {
		s.t.Errorf("came and were never begun: %v", copies)
	}
	harness.CheckSink(s.t, sink)
	s.t.Logf("%d messages, %d of them taken and each found once; %d list swaps, %d reloads", len(s.outcomes), taken, s.swaps, s.reloads)
}

// soakSettles is the length from which on a soak compares memory. Each swap of the lists
// makes a filter of 32 MiB, so it takes some swaps until there is as much garbage as
// ever.
const soakSettles = time.Minute

// checkFlat compares the last third of the samples with the first.
func (s *soak) checkFlat() {
	third := len(s.samples) / 3
	first, last := s.samples[:third], s.samples[len(s.samples)-third:]
	most := func(samples []soakSample, what func(soakSample) int) int {
		return what(slices.MaxFunc(samples, func(a, b soakSample) int { return what(a) - what(b) }))
	}
	for _, f := range []struct {
		name  string
		what  func(soakSample) int
		allow func(first int) int
	}{
		// Connections open and close all the time. A client may have two or none, each with
		// one to the next hop.
		{"descriptors", func(s soakSample) int { return s.descriptors }, func(n int) int { return n + 4*len(soakKinds) }},
		{"goroutines", func(s soakSample) int { return s.goroutines }, func(n int) int { return n + 8*len(soakKinds) }},
		// Garbage may be half as much again.
		{"KiB", func(s soakSample) int { return int(s.resident >> 10) }, func(n int) int { return n + n/2 }},
	} {
		a, b := most(first, f.what), most(last, f.what)
		if f.name == "KiB" && s.samples[len(s.samples)-1].elapsed < soakSettles {
			continue
		}
		if b > f.allow(a) {
			s.t.Errorf("%s: at most %d in the first third, %d in the last", f.name, a, b)
		}
	}
}

// print prints the table.
func (s *soak) print() {
	var b strings.Builder
	b.WriteString("| after | messages | list generation | resident | goroutines | descriptors |\n|---|---|---|---|---|---|\n")
	step := max(1, len(s.samples)/soakRows)
	for i := step - 1; i < len(s.samples); i += step {
		x := s.samples[i]
		fmt.Fprintf(&b, "| %v | %s | %d | %.0f MiB | %d | %d |\n", x.elapsed.Round(time.Second), thousands(x.messages),
			x.generation, float64(x.resident)/(1<<20), x.goroutines, x.descriptors)
	}
	fmt.Print(b.String())
}

// thousands formats a number with commas.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
