package certs

import (
	"strings"
	"testing"
	"time"

	"spamgate/internal/dirwatch"
)

func TestExpiry(t *testing.T) {
	cases := []struct {
		left time.Duration
		want string
	}{
		{8 * 24 * time.Hour, ""},
		{7*24*time.Hour + time.Second, ""},
		{7 * 24 * time.Hour, "expires within 7 days"},
		{time.Second, "expires within 7 days"},
		{0, "has expired"},
		{-time.Hour, "has expired"},
	}
	for _, c := range cases {
		var log logBuffer
		f := newFiles(t)
		f.write(t, newPair(t, oldName, noon.Add(c.left)))
		f.open(t, Options{Logger: log.logger()})
		lines := log.lines("WARN")
		if c.want == "" && lines != nil || c.want != "" && (len(lines) != 1 || !strings.Contains(lines[0], c.want)) {
			t.Errorf("%v left: %q, want %q", c.left, lines, c.want)
		}
	}
}

// A certificate that nobody renews leads to one warning before its end, and one after.
func TestExpiryComes(t *testing.T) {
	var log logBuffer
	f := newFiles(t)
	f.write(t, newPair(t, oldName, nextYear))
	now := noon
	r := &Reloader{
		pairs:   []*pair{{Files: Files{f.cert, f.key}, log: log.logger()}},
		options: Options{now: func() time.Time { return now }},
		watcher: dirwatch.New(discard, "certificates", false),
	}
	for _, step := range []struct {
		instant time.Time
		lines   int
	}{{noon, 0}, {nextYear.Add(-time.Hour), 1}, {nextYear.Add(-time.Minute), 1}, {nextYear, 2}, {nextYear.Add(time.Hour), 2}} {
		now = step.instant
		r.lookAgain()
		if lines := log.lines("WARN"); len(lines) != step.lines {
			t.Errorf("%v: %q", step.instant, lines)
		}
	}
	f.write(t, newPair(t, newName, nextYear.AddDate(0, 0, 90)))
	now = nextYear.AddDate(0, 0, 88)
	r.lookAgain()
	if lines := log.lines("WARN"); len(lines) != 3 {
		t.Errorf("the new one is not warned of: %q", lines)
	}
}
