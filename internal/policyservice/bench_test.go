package policyservice

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"spamgate/internal/door"
)

// newQuestions returns the question of a Postfix about n messages from different senders.
func newQuestions(n int) [][]byte {
	var all [][]byte
	for i := range n {
		q := strings.Replace(good, "instance=1a2b", fmt.Sprintf("instance=%x", i), 1)
		all = append(all, []byte(strings.Replace(q, "sender=ann", fmt.Sprintf("sender=ann%d", i), 1)))
	}
	return all
}

// reader returns a reader for one question.
func reader(question []byte) *bufio.Reader {
	return bufio.NewReaderSize(bytes.NewReader(question), maxLine)
}

// TestAllocations: a question about a message that is known allocates nothing. One about a new
// message allocates what is remembered about it.
func TestAllocations(t *testing.T) {
	s := New(door.Config{Name: "beside"}, door.Settings{Checker: newChecker(t)})
	var q request
	ask := func(r *bufio.Reader, in *bytes.Reader, question []byte) {
		in.Reset(question)
		r.Reset(in)
		if err := q.read(r); err != nil {
			t.Fatal(err)
		}
		if action, ok := s.answer(&q); action != dunno || !ok {
			t.Fatal(action, ok)
		}
	}
	in := new(bytes.Reader)
	r := reader(nil)
	if n := testing.AllocsPerRun(1000, func() { ask(r, in, []byte(good)) }); n > 1 { // []byte(good)
		t.Errorf("%v allocations for a known message", n)
	}
	questions, i := newQuestions(1002), 0
	if n := testing.AllocsPerRun(1000, func() { ask(r, in, questions[i]); i++ }); n > 25 {
		t.Errorf("%v allocations for a new message", n)
	}
}

// BenchmarkQuestion measures questions over kept connections, each of which waits for its
// answer: how long one client waits, and how many answers eight get. Clients and server share
// the machine. SPAMGATE_POLICY_SERVICE is the address of a gate that is asked instead.
func BenchmarkQuestion(b *testing.B) {
	for _, known := range []bool{false, true} {
		for _, clients := range []int{1, 8} {
			b.Run(fmt.Sprintf("known=%v/clients=%d", known, clients), func(b *testing.B) { benchmark(b, clients, known) })
		}
	}
}

func benchmark(b *testing.B, clients int, known bool) {
	s := &service{t: b}
	s.Server = New(door.Config{Name: "beside", Log: slog.New(slog.NewJSONHandler(io.Discard, nil))}, door.Settings{Checker: newChecker(b)})
	if addr := os.Getenv("SPAMGATE_POLICY_SERVICE"); addr == "" {
		s.addr = s.listen("tcp", "127.0.0.1:0")
	} else {
		tcp, err := net.ResolveTCPAddr("tcp", addr)
		if err != nil {
			b.Fatal(err)
		}
		s.addr = tcp
	}
	each := b.N/clients + 1
	waits := make([][]time.Duration, clients)
	ended := make(chan error, clients)
	var conns []net.Conn
	for range clients {
		conns = append(conns, s.dial().Conn)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for c, conn := range conns {
		go func() {
			var err error
			waits[c], err = askMany(conn, c, each, known)
			ended <- err
		}()
	}
	for range clients {
		if err := <-ended; err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	all := slices.Concat(waits...)
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2])/1e3, "p50-µs")
	b.ReportMetric(float64(all[len(all)*99/100])/1e3, "p99-µs")
	b.ReportMetric(float64(len(all))/b.Elapsed().Seconds(), "questions/s")
}

// askMany asks n questions and returns how long each waited.
func askMany(c net.Conn, client, n int, known bool) (waits []time.Duration, err error) {
	if err := c.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	before, after, _ := bytes.Cut([]byte(good), []byte("instance=1a2b"))
	question, answer := make([]byte, 0, 2*len(good)), make([]byte, len("action=DUNNO\n\n"))
	for i := range n {
		if known {
			i = 0
		}
		question = fmt.Appendf(append(question[:0], before...), "instance=%x.%x", client, i)
		began := time.Now()
		if _, err = c.Write(append(question, after...)); err == nil {
			_, err = io.ReadFull(c, answer)
		}
		if err != nil {
			return waits, err
		}
		waits = append(waits, time.Since(began))
	}
	return waits, nil
}
