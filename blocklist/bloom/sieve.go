package bloom

import (
	"bytes"
	"fmt"
	"math"

	"spamgate/hashfamily"
)

// Sieve is a queue that takes every key once: the first time it is pushed. What
// was pushed before is known to a Bloom filter, which needs a few bits a key and
// never forgets one, also after it was popped. The price is that a new key is
// lost where the filter takes it for one that it has seen: with the probability
// [FPR](m, k, n) for the n+1st key, and so on average with less than that for all
// n keys.
//
// A Sieve is for one goroutine at a time.
type Sieve struct {
	filter *Filter
	size   float64
	warn   func(estimate float64)
	queue  [][]byte
}

// NewSieve makes an empty sieve for n different keys, n at least 1; family, with
// its M bits and K functions, says what the filter costs and how many new keys
// are lost. Once more than n keys seem to have been pushed, warn is called with
// [Sieve.EstimatedKeys], once and from inside Push; nil means that nobody cares.
// The sieve goes on to work, and loses more and more.
func NewSieve(family hashfamily.Family, n int, warn func(estimate float64)) (*Sieve, error) {
	if n < 1 {
		return nil, fmt.Errorf("sieve: made for %d keys: use 1 or more", n)
	}
	filter, err := New(family)
	if err != nil {
		return nil, fmt.Errorf("sieve: %w", err)
	}
	return &Sieve{filter: filter, size: float64(n), warn: warn}, nil
}

// Push puts a copy of key into the queue if it is new, and reports whether it is.
// False is wrong for some new keys (see [Sieve]), true is always right.
func (s *Sieve) Push(key []byte) bool {
	if s.filter.MayContain(key) {
		return false
	}
	s.filter.Add(key)
	s.queue = append(s.queue, bytes.Clone(key))
	if s.warn != nil {
		if n := s.EstimatedKeys(); math.Round(n) > s.size {
			warn := s.warn
			s.warn = nil // before the call, which may push
			warn(n)
		}
	}
	return true
}

// Pop takes the key that has waited longest out of the queue, and false if there
// is none. The key is the caller's, and the sieve keeps no memory for it but the
// filter's bits.
func (s *Sieve) Pop() ([]byte, bool) {
	if len(s.queue) == 0 {
		return nil, false
	}
	key := s.queue[0]
	s.queue[0] = nil
	s.queue = s.queue[1:] // append moves what is left to a new place, and drops the old
	if len(s.queue) == 0 {
		s.queue = nil
	}
	return key, true
}

// Len returns the number of keys that wait in the queue.
func (s *Sieve) Len() int { return len(s.queue) }

// EstimatedKeys estimates from the set bits how many different keys were pushed,
// those that were popped and those that were lost included; see
// [Filter.EstimatedEntries], also for what it is wrong by.
func (s *Sieve) EstimatedKeys() float64 { return s.filter.EstimatedEntries() }

// Filter returns the sieve's filter, to read its counts and rates.
func (s *Sieve) Filter() *Filter { return s.filter }
