package store

import (
	"errors"
	"testing"
	"time"
)

// What has to be done when, in milliseconds, with a debounce time of 250 ms and a
// poll every 30 s.
func TestSchedule(t *testing.T) {
	const ms = time.Millisecond
	start := time.Unix(1_000_000, 0)
	locate := func(n int) time.Time { return start.Add(time.Duration(n) * ms) }
	type want struct {
		pos int
		job job
	}
	cases := []struct {
		name   string
		events []int
		staged bool
		again  int // 0: none
		expiry int // 0: never
		want   want
	}{
		{"nothing", nil, false, 0, 0, want{30_000, look}},
		{"asked again", nil, false, 700, 0, want{700, look}},
		{"asked again after the poll", nil, false, 40_000, 0, want{30_000, look}},
		{"event", []int{1000}, false, 0, 0, want{1025, stage}},
		{"event, staged", []int{1000}, true, 0, 0, want{1250, look}},
		{"events do not put it off", []int{1000, 1100, 1249}, true, 0, 0, want{1250, look}},
		{"event while asked again", []int{1000}, false, 1100, 0, want{1100, look}},
		{"event while asked again later", []int{1000}, false, 2000, 0, want{1250, look}},
		{"just before the poll", []int{29_990}, false, 0, 0, want{30_000, look}},
		{"expiry", nil, false, 0, 400, want{400, look}},
		{"expiry after the poll", nil, false, 0, 40_000, want{30_000, look}},
		// The look has come and something was in its way: it is not asked
		// for again and again, as fast as can be.
		{"expiry that was looked at", nil, false, 0, -5, want{30_000, look}},
		{"expiry while a file is written", nil, false, 250, -5, want{250, look}},
	}
	for _, c := range cases {
		s := schedule{timing: timing{30_000 * ms, 250 * ms}}
		s.happened(locate(-100)) // forgotten with the look
		s.looking(locate(0))
		for _, e := range c.events {
			s.happened(locate(e))
		}
		s.staged = c.staged
		if c.again != 0 {
			s.again = locate(c.again)
		}
		if c.expiry != 0 {
			s.expiry = locate(c.expiry)
		}
		if when, job := s.next(); !when.Equal(locate(c.want.pos)) || job != c.want.job {
			t.Errorf("%s: job %d at %v, want %d at %d ms", c.name, job, when.Sub(start), c.want.job, c.want.pos)
		}
	}
}

// How long a change waits: until its files have been left alone for a minute, an
// hour at most; and for files that have gone, a minute.
func TestUnsettled(t *testing.T) {
	p := debounce{quiet: time.Minute, atMost: time.Hour}
	fault := errors.New("fault")
	served := []stamp{{Path: "/a"}, {Path: "/b"}}
	cases := []struct {
		name            string
		changed         time.Duration // ago
		files           int
		err, liveErr    error
		writing, broken time.Duration // for how long already
		want            time.Duration // 0: none
	}{
		{name: "old", changed: 2 * time.Minute, files: 2},
		{name: "new", changed: 0, files: 2, want: time.Minute},
		{name: "recent", changed: 20 * time.Second, files: 2, want: 40 * time.Second},
		{name: "in the future", changed: -time.Hour, files: 2, want: time.Minute},
		{name: "still", changed: 20 * time.Second, files: 2, writing: 30 * time.Minute, want: 40 * time.Second},
		{name: "at the end", changed: 0, files: 2, writing: 59*time.Minute + 30*time.Second, want: 30 * time.Second},
		{name: "too long", changed: 0, files: 2, writing: 2 * time.Hour},
		{name: "fault", err: fault, want: time.Minute},
		{name: "fault for a while", err: fault, broken: 20 * time.Second, want: 40 * time.Second},
		{name: "fault for long enough", err: fault, broken: 2 * time.Minute},
		{name: "fault that is known", err: fault, liveErr: errors.New("fault")},
		{name: "another fault", err: fault, liveErr: errors.New("other"), want: time.Minute},
		{name: "file gone", changed: time.Hour, files: 1, want: time.Minute},
		{name: "file gone for long enough", changed: time.Hour, files: 1, broken: time.Minute},
		{name: "file gone for long enough, another is written", files: 1, broken: time.Minute, want: time.Minute},
		{name: "one more file", changed: time.Hour, files: 3},
	}
	for _, c := range cases {
		now := time.Now()
		s := source{list: &List{}, live: scanResult{good: &version{stamps: served}, err: c.liveErr}}
		if c.writing > 0 {
			s.writing = now.Add(-c.writing)
		}
		if c.broken > 0 {
			s.broken = now.Add(-c.broken)
		}
		var stamps []stamp
		for _, path := range []string{"/a", "/b", "/c"}[:c.files] {
			stamps = append(stamps, stamp{Path: path, attributes: attributes{Change: now.Add(-c.changed).UnixNano()}})
		}
		got := max(0, s.unsettled(stamps, c.err, p))
		if got > c.want+clockTick || got < c.want-time.Since(now) || c.want == 0 && got > 0 {
			t.Errorf("%s: wait %v, want %v", c.name, got, c.want)
		}
		if got := s.unsettled(stamps, c.err, debounce{}); got != 0 {
			t.Errorf("%s: wait %v with the zero debounce", c.name, got)
		}
	}
	// However short it is to be left alone, its time may be a tick too early.
	ahead := []stamp{{Path: "/a", attributes: attributes{Change: time.Now().Add(time.Hour).UnixNano()}}}
	s := source{list: &List{}}
	if got := s.unsettled(ahead, nil, debounce{1, time.Hour}); got != 1+clockTick {
		t.Errorf("wait %v", got)
	}
	s.list.Whole = true
	if got := s.unsettled(ahead, nil, debounce{1, time.Hour}); got != 0 {
		t.Errorf("a list whose files are replaced whole: wait %v", got)
	}
}
