package segment

import "testing"

func TestZeroSegment(t *testing.T) {
	var s Segment
	check(t, &s, nil)
	if err := s.Scan(0, 1<<64-1, func(uint64, []byte) bool { return true }); err != nil {
		t.Error(err)
	}
	if _, ok, err := s.Lookup(1, []byte("a.example")); ok || err != nil {
		t.Error(ok, err)
	}
	if ok, err := s.Has(1, []byte("a.example")); ok || err != nil {
		t.Error(ok, err)
	}
	s.Recheck()
	if s.Size() != 0 {
		t.Errorf("%d bytes", s.Size())
	}
}
