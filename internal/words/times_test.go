package words

import (
	"strings"
	"testing"
	"time"
)

func TestParseDuration(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"1d": day, "30d": 30 * day, "2w": 14 * day, "90m": 90 * time.Minute, "0d": 0, "15250w": 15250 * 7 * day,
	} {
		if got, ok := ParseDuration(text); !ok || got != want {
			t.Errorf("%s: %v, %t", text, got, ok)
		}
	}
	// More than a time.Duration holds is not some other time.
	for _, text := range []string{"", "d", "-1d", "1.5d", "15251w", "65000w", "65536d", "1y"} {
		if got, ok := ParseDuration(text); ok {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// inZone makes a time zone this machine's.
func inZone(t *testing.T, name string) {
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	local := time.Local
	time.Local = zone
	t.Cleanup(func() { time.Local = local })
}

// TestDays: a day is a local one, in the past from its beginning, as an end to its end. A day at whose
// midnight summer time begins or ends is no exception.
func TestDays(t *testing.T) {
	now := time.Date(2026, 6, 15, 10, 0, 0, 0, time.UTC)
	for _, tt := range []struct{ zone, day, begins, ends string }{
		{"UTC", "2026-06-15", "2026-06-15T00:00:00Z", "2026-06-16T00:00:00Z"},
		{"Asia/Kolkata", "2026-06-15", "2026-06-14T18:30:00Z", "2026-06-15T18:30:00Z"},
		{"America/New_York", "2026-06-15", "2026-06-15T04:00:00Z", "2026-06-16T04:00:00Z"},
		{"Europe/Berlin", "2026-10-25", "", "2026-10-25T23:00:00Z"},
		{"Europe/Berlin", "2026-03-29", "2026-03-28T23:00:00Z", ""},
	} {
		inZone(t, tt.zone)
		for _, c := range []struct {
			parse func(string, time.Time) (time.Time, error)
			want  string
		}{{ParseSince, tt.begins}, {ParseUntil, tt.ends}} {
			if got, err := c.parse(tt.day, now); c.want != "" && (err != nil || got.UTC().Format(time.RFC3339) != c.want) {
				t.Errorf("%s in %s: %v, %v; want %s", tt.day, tt.zone, got.UTC(), err, c.want)
			}
		}
	}
}

func TestParseTimes(t *testing.T) {
	inZone(t, "UTC")
	now := time.Date(2026, 11, 23, 9, 30, 0, 500, time.UTC)
	for text, want := range map[string]string{
		"1h": "2026-11-23T10:30:01Z", "2d": "2026-11-25T09:30:01Z", "2026-11-23": "2026-11-24T00:00:00Z",
		"2026-12-01T10:00:00+01:00": "2026-12-01T09:00:00Z",
	} {
		if got, err := ParseUntil(text, now); err != nil || got.Format(time.RFC3339Nano) != want {
			t.Errorf("until %s: %v, %v; want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"1h": "2026-11-23T08:30:00.0000005Z", "2w": "2026-11-09T09:30:00.0000005Z", "1970-01-01": "1970-01-01T00:00:00Z",
		"2026-11-22T10:00:00Z": "2026-11-22T10:00:00Z", "2026-11-22T10:00:00.25+01:00": "2026-11-22T09:00:00.25Z",
	} {
		if got, err := ParseSince(text, now); err != nil || got.UTC().Format(time.RFC3339Nano) != want {
			t.Errorf("since %s: %v, %v; want %s", text, got, err, want)
		}
	}
	for text, says := range map[string]string{
		"0h": "over already", "2026-11-22": "over already", "2026-11-23T09:00:00Z": "over already",
		"-1h": "is not a time: write a duration", "yesterday": "a day such as 2026-11-23", "1y": "2026-11-23T09:30:00Z", "": "is not a time",
	} {
		if got, err := ParseUntil(text, now); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("until %s: %v, %v; want %s", text, got, err, says)
		}
	}
	for text, says := range map[string]string{
		"0d": "is now", "2026-11-24": "still to come", "2026-11-23T09:31:00Z": "still to come",
		"-1h": "is not a time", "soon": "is not a time", "65000w": "is not a time", "": "is not a time",
	} {
		if got, err := ParseSince(text, now); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("since %s: %v, %v; want %s", text, got, err, says)
		}
	}
}
