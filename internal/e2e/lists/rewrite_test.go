package lists

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// rewrites returns how often the lists are rewritten in all.
func rewrites() int { return harness.IfFull(50, 200) }

// TestListsRewritten rewrites lists while clients ask without a pause. Every reply has
// to be that of the old or the new version, and the new version has to go live. Each way
// of rewriting has a gate of its own. The gates run at the same time, since they mostly
// wait.
func TestListsRewritten(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for name, rewrite := range rewriters {
		r := newRewriteRun(t, name, rewrite)
		wg.Go(func() {
			if err := r.run(harness.IfShort(rewrites()/len(rewriters), 2)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	wg.Wait()
}

// A rewriteRun is a gate whose two lists are rewritten one after the other, and what is
// known of their versions. The list blocked rejects, the list tagged tags.
type rewriteRun struct {
	t       testing.TB
	name    string
	rewrite rewriter
	gate    *harness.Gate
	sink    *smtptest.Sink

	written atomic.Int64 // the newest version that may be on disk
	live    atomic.Int64 // the newest version of blocked that a reply has shown
	asked   atomic.Int64
	done    chan struct{}
}

func newRewriteRun(t testing.TB, name string, rewrite rewriter) *rewriteRun {
	sink := smtptest.NewSink(t)
	return &rewriteRun{
		t:       t,
		name:    name,
		rewrite: rewrite,
		sink:    sink,
		done:    make(chan struct{}),
		gate: harness.StartGate(t, harness.Setup{
			NextHop: "smtp://" + sink.Addr(),
			Lists:   harness.RewriteLists,
			Files: map[string]string{
				"lists/blocked.txt": harness.VersionText("blocked", 0),
				"lists/tagged.txt":  harness.VersionText("tagged", 0),
			},
		}),
	}
}

func (r *rewriteRun) run(n int) error {
	clients := make(chan error, 2)
	go func() { clients <- r.ask() }()
	go func() { clients <- r.deliver() }()
	var took []time.Duration
	var errs []error
	for version := 1; version <= n && errs == nil; version++ {
		wait, err := r.next(version)
		if err != nil {
			errs = append(errs, err)
		}
		took = append(took, wait)
	}
	close(r.done)
	errs = append(errs, <-clients, <-clients)
	r.gate.Stop()
	errs = append(errs, r.checkTags(n))
	slices.Sort(took)
	r.t.Logf("%s: %d rewrites, live after %v (median), %v (longest); %d answers, %d messages meanwhile",
		r.name, n, took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond),
		r.asked.Load(), len(r.sink.Messages()))
	return errors.Join(errs...)
}

// next writes a version and waits until it is live. The test logs how long that takes,
// since a busy machine may need more than a second.
func (r *rewriteRun) next(version int) (took time.Duration, err error) {
	r.written.Store(int64(version))
	for _, name := range []string{"blocked", "tagged"} {
		if err := r.rewrite(r.gate.Dir, name+".txt", harness.VersionText(name, version), version); err != nil {
			return 0, err
		}
	}
	since := time.Now()
	c := &harness.Asker{Addr: r.gate.Addr}
	defer c.Close()
	for {
		v, err := r.answer(c, "last")
		took := time.Since(since)
		switch {
		case err != nil || v == version:
			return took, err
		case took > harness.WorkTimeout:
			return took, fmt.Errorf("version %d is not live after %v", version, took)
		}
	}
}

var versionReason = regexp.MustCompile(`^550 5\.7\.1 <x@(?:first|last)\.blocked\.example> refused: list blocked \((?:first|last) of version (\d+)\); id [A-Z2-7]{12}$`)

// answer asks about the first or last entry of the list and checks the version.
func (r *rewriteRun) answer(c *harness.Asker, end string) (version int, err error) {
	before := r.live.Load()
	reply, err := c.Verdict("x@"+end+".blocked.example", "b@example.net")
	if err != nil {
		return 0, err
	}
	m := versionReason.FindStringSubmatch(reply)
	if m == nil {
		return 0, fmt.Errorf("%s is in every version, and the answer was %q", end, reply)
	}
	version, _ = strconv.Atoi(m[1])
	if v := int64(version); v < before || v > r.written.Load() {
		return 0, fmt.Errorf("version %d answered, when %d had been seen and %d was written", version, before, r.written.Load())
	}
	r.asked.Add(1)
	for { // keep the newest version that a reply has shown
		seen := r.live.Load()
		if int64(version) <= seen || r.live.CompareAndSwap(seen, int64(version)) {
			return version, nil
		}
	}
}

// ask asks until the end of the test.
func (r *rewriteRun) ask() error {
	c := &harness.Asker{Addr: r.gate.Addr}
	defer c.Close()
	for !r.ended() {
		for _, end := range []string{"first", "last"} {
			if _, err := r.answer(c, end); err != nil {
				return err
			}
		}
		if reply, err := c.Verdict("a@clean.example", "b@example.net"); err != nil || !strings.HasPrefix(reply, "250") {
			return fmt.Errorf("a sender in no list: %q, %w", reply, err)
		}
	}
	return nil
}

func (r *rewriteRun) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// deliver sends messages with the first entry of the tag list in the envelope and the
// last one in the header.
func (r *rewriteRun) deliver() error {
	c, err := harness.Dial(r.gate.Addr, "")
	if err != nil {
		return err
	}
	defer c.Close()
	for !r.ended() {
		reply, err := c.Send("x@first.tagged.example", "b@example.net", []byte(harness.SmallMessage("x@last.tagged.example", "tagged")))
		if err != nil || !strings.HasPrefix(reply, "250") {
			return fmt.Errorf("a tagged message: %q, %w", reply, err)
		}
	}
	return nil
}

var versionTag = regexp.MustCompile(`(?m)^X-Spamgate: listed; list=tagged; reason=(?:first|last) of version (\d+)\r$`)

// checkTags checks that one version judged both senders of a message, and that no later
// message was judged by an earlier version.
func (r *rewriteRun) checkTags(n int) error {
	newest := 0
	for _, m := range r.sink.Messages() {
		tags := versionTag.FindAllSubmatch(m.Body, -1)
		if len(tags) != 2 || string(tags[0][1]) != string(tags[1][1]) {
			return fmt.Errorf("want two tags of one version: %.300q", m.Body)
		}
		version, _ := strconv.Atoi(string(tags[0][1]))
		if version < newest || version > n {
			return fmt.Errorf("a message was judged by version %d after %d", version, newest)
		}
		newest = version
	}
	return nil
}
