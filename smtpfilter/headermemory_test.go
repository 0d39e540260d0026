package smtpfilter_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
)

// maxHeld is what a client with the largest header may hold while its body drips,
// in bytes, with all that a session needs.
const maxHeld = 2 << 20

// TestHostileHeaderMemory wants clients with the largest hostile headers and endless
// bodies to use little memory.
func TestHostileHeaderMemory(t *testing.T) {
	rows := "From: \\\""
	for i := 0; len(rows) < 262_000; i++ {
		rows += fmt.Sprintf("%d\"@", i)
	}
	addresses := "From: "
	for i := range 990 {
		addresses += fmt.Sprintf("a%d@%slisted.example,\r\n ", i, strings.Repeat("b.", 110))
	}
	for name, header := range map[string]string{
		"rows of at signs":  rows,
		"listed addresses":  addresses + "x\r\n",
		"one long address":  "From: " + strings.Repeat("a", 261_000) + "@listed.example\r\n",
		"one long field":    "Subject: x\r\nMessage-ID: <" + strings.Repeat("a", 261_000) + "@b.example>\r\n",
		"stuffed":           "From: a@clean.example\r\n" + strings.Repeat("..x: y\r\n", 32_000),
		"lines, no address": strings.Repeat("x\r\n", 87_000),
	} {
		t.Run(name, func(t *testing.T) {
			clients := 20
			if header == rows {
				clients = 50
			}
			heldBy(t, header+"\r\n", clients)
		})
	}
}

// heldBy measures the heap while many clients have sent a header and the beginning of a
// body.
func heldBy(t *testing.T, header string, clients int) {
	t.Helper()
	sink := smtptest.NewSink(t)
	var read atomic.Int64
	l := &countingListener{onWrite: func() {}, onRead: func(n int) { read.Add(int64(n)) }}
	g := newGateOn(t, l, gateOptions{
		nextHop: sink.Addr(),
		checker: mustJudge(t, "header @listed.example tag"),
		policy:  smtpfilter.Policy{HeaderFields: []string{"From", "Sender", "Reply-To"}},
	})
	before := heap()
	var sent int64
	var all []*client
	for range clients {
		c := dial(t, g.addr)
		all = append(all, c)
		c.reply("220")
		for _, command := range []string{"HELO client.example\r\n", "MAIL FROM:<a@example.com>\r\n", "RCPT TO:<b@example.net>\r\n"} {
			c.send(command)
			c.reply("250")
			sent += int64(len(command))
		}
		c.send("DATA\r\n")
		c.reply("354")
		sent += int64(len("DATA\r\n"))
	}
	// Each reads what follows once it has judged the header.
	for _, piece := range []string{header, "a body\r\n", "that drips\r\n"} {
		for _, c := range all {
			c.send(piece)
			sent += int64(len(piece))
		}
		for late := time.After(10 * waitLimit); read.Load() < sent; { // a busy machine judges for long
			select {
			case <-late:
				t.Fatalf("the gate has read %d bytes of %d", read.Load(), sent)
			case <-time.After(time.Millisecond):
			}
		}
	}
	held := (heap() - before) / int64(clients)
	for _, c := range all {
		c.Close()
	}
	t.Logf("%d bytes of header: a client holds %d KiB", len(header), held>>10)
	if held > maxHeld {
		t.Errorf("a client holds %d bytes, want at most %d", held, maxHeld)
	}
}

// heap returns the size of what is reachable.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what the first has finalised
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
