package limit

import (
	"encoding/binary"
	"net/netip"
	"runtime"
	"testing"
	"time"
)

// numbered returns one of many addresses, each in its own network.
func numbered(i int) netip.Addr {
	var a [16]byte
	copy(a[:], []byte{0x20, 0x01, 0x0d, 0xb8})
	binary.BigEndian.PutUint16(a[4:], uint16(i))
	return netip.AddrFrom16(a)
}

// TestSweep wants unused entries to be dropped whatever comes next.
func TestSweep(t *testing.T) {
	clock := newClock()
	l := New(Config{
		Client:  Limits{MessagesPerMinute: 60, Connections: 5},
		Network: Limits{MessagesPerMinute: 1},
		Now:     clock.now,
	})
	for i := range 100 {
		l.Message(numbered(i))
	}
	if n, _ := l.size(t); n != 200 {
		t.Fatalf("%d entries", n)
	}
	ticket, _ := l.Connect(numbered(7))
	clock.advance(time.Minute)
	l.Message(numbered(200))
	if n, _ := l.size(t); n != 200-sweepEach+2 {
		t.Errorf("%d entries after one operation", n)
	}
	for range 100 {
		l.Message(numbered(200))
	}
	if n, idle := l.size(t); n != 3 || idle != 2 { // the open one, the last one and its network
		t.Errorf("%d entries, %d idle", n, idle)
	}
	ticket.Release()
	clock.advance(time.Minute)
	l.Message(numbered(201))
	l.Message(numbered(202))
	if n, _ := l.size(t); n != 4 {
		t.Errorf("%d entries", n)
	}
}

// TestEviction wants a full table to keep the clients seen last, and those with open
// connections.
func TestEviction(t *testing.T) {
	const most = 10
	l := New(Config{
		Client:     Limits{MessagesPerMinute: 1, Connections: 1},
		MaxEntries: most,
		Now:        newClock().now,
	})
	held, _ := l.Connect(numbered(0))
	l.Message(numbered(1))
	for i := 2; i < 1000; i++ {
		l.Message(numbered(i))
		if v := l.Message(numbered(1)); v.Allowed() { // refused, and seen
			t.Fatalf("forgotten at %d", i)
		}
		if n, _ := l.size(t); n > most {
			t.Fatalf("%d entries", n)
		}
	}
	if v := l.Message(numbered(500)); !v.Allowed() {
		t.Error("not forgotten")
	}
	if _, v := l.Connect(numbered(0)); v.Allowed() {
		t.Error("an open connection was forgotten")
	}

	// With nothing but open connections the table grows by them alone.
	tickets := []*Ticket{held}
	for i := range 2 * most {
		ticket, v := l.Connect(numbered(2000 + i))
		if !v.Allowed() {
			t.Fatal(v)
		}
		tickets = append(tickets, ticket)
	}
	for i := range 100 {
		l.Message(numbered(3000 + i))
	}
	if n, idle := l.size(t); n != len(tickets)+1 || idle != 1 {
		t.Errorf("%d entries, %d idle, %d connections", n, idle, len(tickets))
	}
	for _, ticket := range tickets {
		ticket.Release()
	}
	l.Message(numbered(4000))
	if n, _ := l.size(t); n > most {
		t.Errorf("%d entries", n)
	}
}

// TestEvictionKeepsOwn wants a client in a full table not to replace its own network.
func TestEvictionKeepsOwn(t *testing.T) {
	l := New(Config{
		Client: Limits{MessagesPerMinute: 10}, Network: Limits{MessagesPerMinute: 3, Connections: 9},
		MaxEntries: 2, Now: newClock().now,
	})
	for i := range 5 {
		l.Connect(numbered(i))
	}
	for range 3 {
		if v := l.Message(addr("192.0.2.1")); !v.Allowed() {
			t.Error(v)
		}
	}
	if v := l.Message(addr("192.0.2.1")); v.Scope != Network {
		t.Errorf("%+v", v)
	}
	if v := l.Message(addr("192.0.2.2")); v.Scope != Network {
		t.Errorf("%+v", v)
	}
}

// TestEntrySize checks the size of an entry that Config.MaxEntries documents, with its
// share of the map.
func TestEntrySize(t *testing.T) {
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	l := New(Config{Client: Limits{MessagesPerMinute: 1}, Now: newClock().now})
	before := heap()
	for i := range 1 << 16 {
		l.Message(numbered(i))
	}
	n, _ := l.size(t)
	if each := (heap() - before) / n; n != 1<<16 || each > 150 {
		t.Errorf("%d entries, %d bytes each", n, each)
	} else {
		t.Logf("%d bytes an entry", each)
	}
	runtime.KeepAlive(l)
}
