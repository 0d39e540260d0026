package limit

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Each event uses 60 microseconds up.
var ample = Limits{1e6, 1e6, 1e6, 1e6, 1e6}

// BenchmarkUnlimited measures what every client costs if nothing is limited.
func BenchmarkUnlimited(b *testing.B) {
	l, a := New(Config{}), addr("192.0.2.1")
	for b.Loop() {
		l.Message(a)
	}
}

// benchmarkParallel uses all cores, with clients of 1,000 networks and limits for client
// and network.
func benchmarkParallel(b *testing.B, op func(l *Limiter, i int)) {
	// The clock is as dear as a real one and slow, so that no entry is whole
	// again before its next use.
	began := time.Now()
	slow := func() time.Time { return began.Add(time.Since(began) / 1000) }
	l := New(Config{Client: ample, Network: ample, MaxConnections: 1 << 30, Now: slow})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := rand.IntN(1 << 16); pb.Next(); i++ {
			op(l, i)
		}
	})
}

func BenchmarkMessage(b *testing.B) {
	benchmarkParallel(b, func(l *Limiter, i int) { l.Message(numbered(i * 7919 % 1000)) })
}

func BenchmarkConnect(b *testing.B) {
	benchmarkParallel(b, func(l *Limiter, i int) {
		ticket, _ := l.Connect(numbered(i * 7919 % 1000))
		ticket.Release()
	})
}

// BenchmarkFlood has only new clients while the table is full, so that each one replaces
// another.
func BenchmarkFlood(b *testing.B) {
	tight := Limits{MessagesPerMinute: 1}
	l := New(Config{Client: tight, Network: tight, MaxEntries: 1 << 12})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		l.Message(numbered(i))
	}
}
