package console

import (
	"testing"
	"time"

	"spamgate/internal/managed"
)

func TestUntilTime(t *testing.T) {
	now := time.Date(2026, 12, 31, 9, 30, 0, 0, time.Local)
	for _, tt := range []struct {
		end  time.Time
		want string
	}{
		{now.Add(time.Hour), "10:30"},
		{now.AddDate(0, 0, 1), "tomorrow, 09:30"},
		{now.AddDate(0, 0, 2), "2027-01-02 09:30"},
		{now.AddDate(1, 0, 0), "2027-12-31 09:30"},
	} {
		if got := untilTime(tt.end, now); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.end, got, tt.want)
		}
	}
}

func TestChangeWords(t *testing.T) {
	local := time.Date(2026, 11, 24, 12, 14, 5, 0, time.UTC).Local().Format("2006-01-02 15:04")
	for _, tt := range []struct {
		change managed.Change
		want   string
	}{
		{managed.Change{What: "added spam.example", Entry: "spam.example"}, "added spam.example"},
		{managed.Change{What: "added spam.example until 2026-11-24T12:14:05Z", Entry: "spam.example"}, "added spam.example until " + local},
		{managed.Change{What: "undone: added ann@b.example x@a.example", Entry: "x@a.example", For: "ann@b.example"}, "undone: added x@a.example for ann@b.example"},
		{managed.Change{What: "until 2026-99-99T99:99:99Z"}, "until 2026-99-99T99:99:99Z"},
	} {
		if got := changeWords(&tt.change); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.change.What, got, tt.want)
		}
	}
}
