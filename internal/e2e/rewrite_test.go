package e2e

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

	"spamgate/internal/smtptest"
)

// rewrites is how often the lists are rewritten, altogether.
const rewrites = 200

// TestListsRewritten rewrites lists while clients ask without a pause. Every
// answer has to be that of the version before or of the new one, whole, and the
// new one has to come. Each way has a gate of its own; they run at the same time,
// since they mostly wait.
func TestListsRewritten(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for name, rewrite := range rewriters {
		r := newRewriting(t, name, rewrite)
		wg.Go(func() {
			if err := r.run(short(rewrites/len(rewriters), 2)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	wg.Wait()
}

// rewriting is one gate, its lists, and what is known of their versions. The
// list "blocked" rejects, the list "tagged" tags; both are rewritten one after
// the other.
type rewriting struct {
	t       testing.TB
	name    string
	rewrite rewriter
	gate    *gate
	sink    *smtptest.Sink

	written atomic.Int64 // the newest version that may be on disk
	live    atomic.Int64 // the newest version of "blocked" that somebody has seen
	asked   atomic.Int64
	done    chan struct{}
}

const rewriteLists = `
[[list]]
name = "blocked"
path = "lists/blocked.txt"
[[list]]
name = "tagged"
path = "lists/tagged.txt"
action = "tag"
`

func newRewriting(t testing.TB, name string, rewrite rewriter) *rewriting {
	sink := smtptest.NewSink(t)
	return &rewriting{
		t:       t,
		name:    name,
		rewrite: rewrite,
		sink:    sink,
		done:    make(chan struct{}),
		gate: startGate(t, setup{
			nextHop: "smtp://" + sink.Addr(),
			lists:   rewriteLists,
			files: map[string]string{
				"lists/blocked.txt": versionText("blocked", 0),
				"lists/tagged.txt":  versionText("tagged", 0),
			},
		}),
	}
}

// versionText is a list whose entries all give the version in their reason. A
// list that is cut short lacks the last of them.
func versionText(name string, version int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "first.%s.example  # first of version %d\n", name, version)
	for i := range 1500 {
		fmt.Fprintf(&b, "filler-%d-%d.example\n", i, version)
	}
	fmt.Fprintf(&b, "last.%s.example  # last of version %d\n", name, version)
	return b.String()
}

func (r *rewriting) run(n int) error {
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
	r.gate.stop()
	errs = append(errs, r.checkTags(n))
	slices.Sort(took)
	r.t.Logf("%s: %d rewrites, live after %v (median), %v (longest); %d answers, %d messages meanwhile",
		r.name, n, took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond),
		r.asked.Load(), len(r.sink.Messages()))
	return errors.Join(errs...)
}

// next writes a version and waits until it answers. That ought to take a second at
// most, which a busy machine may not keep; the test logs it.
func (r *rewriting) next(version int) (took time.Duration, err error) {
	r.written.Store(int64(version))
	for _, name := range []string{"blocked", "tagged"} {
		if err := r.rewrite(r.gate.dir, name+".txt", versionText(name, version), version); err != nil {
			return 0, err
		}
	}
	since := time.Now()
	c := &asker{addr: r.gate.addr}
	defer c.close()
	for {
		v, err := r.answer(c, "last")
		took := time.Since(since)
		switch {
		case err != nil || v == version:
			return took, err
		case took > lateLimit:
			return took, fmt.Errorf("version %d is not live after %v", version, took)
		}
	}
}

var versionReason = regexp.MustCompile(`^550 5\.7\.1 <x@(?:first|last)\.blocked\.example> refused: list blocked \((?:first|last) of version (\d+)\); id [A-Z2-7]{12}$`)

// answer asks about a sender at one end of the list and checks the version.
func (r *rewriting) answer(c *asker, end string) (version int, err error) {
	before := r.live.Load()
	reply, err := c.verdict("x@"+end+".blocked.example", "b@example.net")
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
	for { // the newest that was seen
		seen := r.live.Load()
		if int64(version) <= seen || r.live.CompareAndSwap(seen, int64(version)) {
			return version, nil
		}
	}
}

// ask asks until the end of the test.
func (r *rewriting) ask() error {
	c := &asker{addr: r.gate.addr}
	defer c.close()
	for !r.ended() {
		for _, end := range []string{"first", "last"} {
			if _, err := r.answer(c, end); err != nil {
				return err
			}
		}
		if reply, err := c.verdict("a@clean.example", "b@example.net"); err != nil || !strings.HasPrefix(reply, "250") {
			return fmt.Errorf("a sender in no list: %q, %w", reply, err)
		}
	}
	return nil
}

func (r *rewriting) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// deliver sends messages with one end of the tag list in the envelope and the
// other in the header.
func (r *rewriting) deliver() error {
	c, err := dial(r.gate.addr, "")
	if err != nil {
		return err
	}
	defer c.Close()
	for !r.ended() {
		reply, err := c.send("x@first.tagged.example", "b@example.net", []byte(letter("x@last.tagged.example", "tagged")))
		if err != nil || !strings.HasPrefix(reply, "250") {
			return fmt.Errorf("a tagged message: %q, %w", reply, err)
		}
	}
	return nil
}

var versionTag = regexp.MustCompile(`(?m)^X-Spamgate: listed; list=tagged; reason=(?:first|last) of version (\d+)\r$`)

// checkTags looks at the tags of the messages that came: both senders of one
// message were judged by one version, and later messages by no earlier one.
func (r *rewriting) checkTags(n int) error {
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
