package bloom

import (
	"bytes"
	"fmt"
	"math"

	"spamgate/hashfamily"
)

// Sieve is a queue that takes every key only once. A Bloom filter knows the keys
// that were pushed before, also those that were popped, in a few bits a key. The
// price is that a new key is lost if the filter takes it for an old one: with the
// probability [FPR](m, k, n) for key n+1, and with less on average for all n keys.
//
// A Sieve is for one goroutine at a time.
type Sieve struct {
	filter *Filter
	size   float64
	warn   func(estimate float64)
	queue  [][]byte
}

// NewSieve returns an empty sieve for n different keys, n at least 1. The family's
// M and K decide the filter's size and how many new keys are lost. When more than n
// keys seem to have been pushed, Push calls warn once, if it is not nil, with
// [Sieve.EstimatedKeys]. The sieve goes on working, and loses more and more keys.
func NewSieve(family hashfamily.Family, n int, warn func(estimate float64)) (*Sieve, error) {
	if n < 1 {
		return nil, fmt.Errorf("sieve: for %d keys: use 1 or more", n)
	}
	filter, err := New(family)
	if err != nil {
		return nil, fmt.Errorf("sieve: %w", err)
	}
	return &Sieve{filter: filter, size: float64(n), warn: warn}, nil
}

// Push adds a copy of key to the queue if it is new, and reports whether it is.
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

// Pop removes the key that has waited longest and returns it, or false if there is
// none. The key is the caller's; the sieve keeps only the filter's bits of it.
func (s *Sieve) Pop() ([]byte, bool) {
	if len(s.queue) == 0 {
		return nil, false
	}
	key := s.queue[0]
	s.queue[0] = nil
	s.queue = s.queue[1:] // append moves the rest and frees the old memory
	if len(s.queue) == 0 {
		s.queue = nil
	}
	return key, true
}

// Len returns the number of keys in the queue.
func (s *Sieve) Len() int { return len(s.queue) }

// EstimatedKeys estimates how many different keys were pushed, popped and lost ones
// included; see [Filter.EstimatedEntries] for its error.
func (s *Sieve) EstimatedKeys() float64 { return s.filter.EstimatedEntries() }

// Filter returns the sieve's filter, to read its counts and rates.
func (s *Sieve) Filter() *Filter { return s.filter }
