package rhsbl

import (
	"hash/maphash"
	"net/netip"
	"sync/atomic"
	"time"
)

// limiter limits the answers over UDP to each network. Its senders can be forged, so an
// unlimited server would flood whomever an attacker names.
//
// It uses the generic cell rate algorithm (ITU-T I.371): a slot holds when the answers so
// far would have been sent at the permitted rate, and may be ahead of the time by a second.
// Networks whose hashes meet in a slot share it. The hash is keyed, so nobody can choose
// them.
type limiter struct {
	seed  maphash.Seed
	start time.Time
	slots [1 << 16]atomic.Int64 // nanoseconds since start
	over  atomic.Uint64
}

func (l *limiter) init() { l.seed, l.start = maphash.MakeSeed(), time.Now() }

// limited is what becomes of a question.
type limited uint8

const (
	pass limited = iota

	// slip answers that the client should ask over TCP. Every second question gets
	// that: it is no larger than the question, and a client that is there gets through.
	slip
	drop
)

// take counts a question over UDP.
func (l *limiter) take(client netip.Addr, rate int) limited {
	if rate <= 0 || client.IsLoopback() {
		return pass
	}
	if l.allow(client, rate, int64(time.Since(l.start))) {
		return pass
	}
	if l.over.Add(1)%2 == 1 {
		return slip
	}
	return drop
}

// allow reports whether the client's network may have another answer.
func (l *limiter) allow(client netip.Addr, rate int, current int64) bool {
	bits := 24
	if client.Is6() {
		bits = 48
	}
	network, _ := client.Prefix(bits)
	slot := &l.slots[maphash.Comparable(l.seed, network.Addr())%uint64(len(l.slots))]
	for {
		old := slot.Load()
		next := max(old, current) + int64(time.Second)/int64(rate)
		if next-current > int64(time.Second) {
			return false
		}
		if slot.CompareAndSwap(old, next) {
			return true
		}
	}
}
