package e2e

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

	"spamgate/internal/smtptest"
)

// soakVariable is how long the soak takes, such as "20m".
const soakVariable = "SPAMGATE_SOAK"

const (
	defaultSoak = 10 * time.Second
	shortSoak   = 5 * time.Second // with -short
)

// soakRows is how many rows the table of a soak has.
const soakRows = 12

// TestSoak loads a gate with all kinds of messages, while its lists change every
// second and its configuration is read again now and then. In the end every message
// that was answered with 250 must be there once, and no other; and what the gate
// uses must not have grown. It prints a table for docs/reliability.md.
func TestSoak(t *testing.T) {
	length := time.Duration(short(int(defaultSoak), int(shortSoak)))
	if text := os.Getenv(soakVariable); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil || length < defaultSoak {
			t.Fatalf("%s=%s: want a duration of at least %v", soakVariable, text, defaultSoak)
		}
	}
	sink := smtptest.NewSink(t, smtptest.Config{DropBodies: true, Extensions: append(smtptest.DefaultExtensions, "CHUNKING")})
	cert, key := soakCertificate(t)
	g := startGate(t, setup{
		nextHop: "smtp://" + sink.Addr(),
		keys: map[string]string{
			"listen":   "tls = \"starttls\"\ntls_cert = \"gate.pem\"\ntls_key = \"gate.key\"",
			"next_hop": noNames,
		},
		lists: rewriteLists,
		files: map[string]string{
			"gate.pem": cert, "gate.key": key,
			"lists/blocked.txt": versionText("blocked", 0),
			"lists/tagged.txt":  versionText("tagged", 0),
		},
	})
	g.log.sift(func(line string) bool {
		return strings.Contains(line, `"msg":"state"`) || !strings.Contains(line, `"level":"INFO"`)
	})
	waitOffered(t, g.addr, "CHUNKING")
	s := &soak{t: t, gate: g, done: make(chan struct{}), fates: map[string]fate{}}
	s.run(length)

	if bad := g.records("reload failed, nothing has changed"); len(bad) > 0 {
		t.Errorf("a reload failed: %v", bad[0])
	}
	for line := range strings.Lines(g.log.String()) {
		if parseRecord(line).string("level") == "ERROR" {
			t.Errorf("in the log: %s", line)
		}
	}
	s.checkLedger(sink)
	s.checkFlat()
	s.print()
}

// soak is one run.
type soak struct {
	t       testing.TB
	gate    *gate
	done    chan struct{}
	samples []soakSample
	swaps   int
	reloads int

	mu    sync.Mutex
	fates map[string]fate // of the messages that were begun, by sender
}

// fate is what became of a message.
type fate int

const (
	soakRefused fate = iota // or given up before its end
	soakTaken
)

// soakSample is what the gate uses at a time.
type soakSample struct {
	at          time.Duration
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
			s.gate.signal(syscall.SIGHUP)
			s.reloads++
		}
	}
	close(s.done)
	load.Wait()
}

// sample asks the gate, and the system, what it uses.
func (s *soak) sample(at time.Duration) {
	pid := s.gate.process.Pid
	n := len(s.samples) + 1
	s.gate.signal(syscall.SIGUSR1)
	state := parseRecord(s.gate.log.wait(fmt.Sprintf("state %d", n), func(line string) bool {
		if parseRecord(line).matches("state", nil) {
			n--
			return n == 0
		}
		return false
	}))
	number := func(key string) int { f, _ := state[key].(float64); return int(f) }
	s.mu.Lock()
	messages := len(s.fates)
	s.mu.Unlock()
	s.samples = append(s.samples, soakSample{
		at: at, messages: messages,
		resident: resident(s.t, pid), descriptors: descriptors(s.t, pid),
		goroutines: number("goroutines"), generation: number("generation"),
	})
}

// swapLists replaces both lists every second, by a rename.
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
			path := filepath.Join(s.gate.dir, "lists", name)
			err := os.WriteFile(path+".new", []byte(versionText(name, version)), 0o644)
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

// soakPause is what a client waits between two messages: the soak is to last, not
// to find out how fast the gate is.
const soakPause = 20 * time.Millisecond

// send is one client: it sends messages of its kind until the end of the soak.
func (s *soak) send(n int, kind soakKind) {
	c := &soakClient{addr: s.gate.addr, from: fmt.Sprintf("127.0.%d.1", 10+n)}
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
		s.fates[sender] = became
		s.mu.Unlock()
	}
}

// checkLedger wants what was taken to be at the next hop once, and nothing else.
func (s *soak) checkLedger(sink *smtptest.Sink) {
	copies := map[string]int{}
	for _, m := range sink.Messages() {
		from, _, _ := strings.Cut(strings.TrimPrefix(m.Mail, "MAIL FROM:<"), ">")
		copies[from]++
	}
	taken := 0
	for sender, became := range s.fates {
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
	checkSink(s.t, sink)
	s.t.Logf("%d messages, %d of them taken and each found once; %d list swaps, %d reloads", len(s.fates), taken, s.swaps, s.reloads)
}

// soakSettles is how long a soak has to be for its memory to be compared: each swap
// of the lists makes a filter of 32 MiB, and it takes some until there is as much
// garbage as there ever is.
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
		// Connections open and close all the time: of a client there may be one that
		// ends and one that begins, or none, and each may have one to the next hop.
		{"descriptors", func(s soakSample) int { return s.descriptors }, func(n int) int { return n + 4*len(soakKinds) }},
		{"goroutines", func(s soakSample) int { return s.goroutines }, func(n int) int { return n + 8*len(soakKinds) }},
		// Half as much again is how much garbage there may be.
		{"KiB", func(s soakSample) int { return int(s.resident >> 10) }, func(n int) int { return n + n/2 }},
	} {
		a, b := most(first, f.what), most(last, f.what)
		if f.name == "KiB" && s.samples[len(s.samples)-1].at < soakSettles {
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
		fmt.Fprintf(&b, "| %v | %s | %d | %.0f MiB | %d | %d |\n", x.at.Round(time.Second), thousands(x.messages),
			x.generation, float64(x.resident)/(1<<20), x.goroutines, x.descriptors)
	}
	fmt.Print(b.String())
}

// thousands writes a number with commas.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
