package gate

import (
	"testing"
	"time"

	"spamgate/internal/admin"
)

func TestCopyProblem(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration) *time.Time {
		at := now.Add(-d)
		return &at
	}
	const url = "https://lists.example/a"
	for _, test := range []struct {
		list    admin.List
		refresh time.Duration
		problem bool
	}{
		{admin.List{}, 0, false}, // from a file, however old
		{admin.List{URL: url}, time.Hour, false},
		{admin.List{URL: url, Fetch: &admin.Fetch{}}, time.Hour, false}, // it is being fetched
		{admin.List{URL: url, Fetch: &admin.Fetch{Failures: 1, Error: "404"}}, time.Hour, true},
		{admin.List{URL: url, Fetch: &admin.Fetch{LastGood: ago(23 * time.Hour), Failures: 9}}, time.Hour, false},
		{admin.List{URL: url, Fetch: &admin.Fetch{LastGood: ago(25 * time.Hour), Failures: 9}}, time.Hour, true},
		{admin.List{URL: url, Fetch: &admin.Fetch{LastGood: ago(25 * time.Hour)}, Pinned: &admin.Pinned{}}, time.Hour, false},
		{admin.List{URL: url, Fetch: &admin.Fetch{LastGood: ago(0), Expires: ago(-time.Second)}}, time.Hour, false},
		{admin.List{URL: url, Fetch: &admin.Fetch{LastGood: ago(0), Expires: ago(0)}}, time.Hour, true},
		{admin.List{URL: url, Fetch: &admin.Fetch{LastGood: ago(0), Expires: ago(0), Replaced: true}}, time.Hour, false},
		{admin.List{URL: url, Fetch: &admin.Fetch{LastGood: ago(71 * time.Hour)}}, 24 * time.Hour, false},
		{admin.List{URL: url, Fetch: &admin.Fetch{LastGood: ago(73 * time.Hour)}}, 24 * time.Hour, true},
	} {
		if got := copyProblem(&test.list, test.refresh, now); (got != "") != test.problem {
			t.Errorf("%+v, every %v: %q", test.list.Fetch, test.refresh, got)
		}
	}
}
