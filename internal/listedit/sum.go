package listedit

import (
	"crypto/sha256"
	"sync"
)

// sum computes a SHA-256 beside the writing: for a long list it takes longer than the
// copying does.
type sum struct {
	full, empty chan []byte
	end         func() [sha256.Size]byte // the sum of what was written; ends the computing
}

// sumBuffer is how much is written at a time.
const sumBuffer = 256 << 10

func newSum() *sum {
	s := &sum{full: make(chan []byte), empty: make(chan []byte, 2)}
	for range cap(s.empty) {
		s.empty <- nil
	}
	done := make(chan [sha256.Size]byte)
	go func() {
		h := sha256.New()
		for b := range s.full {
			h.Write(b)
			s.empty <- b
		}
		done <- [sha256.Size]byte(h.Sum(nil))
	}()
	s.end = sync.OnceValue(func() [sha256.Size]byte {
		close(s.full)
		return <-done
	})
	return s
}

func (s *sum) Write(p []byte) (int, error) {
	s.full <- append((<-s.empty)[:0], p...)
	return len(p), nil
}
