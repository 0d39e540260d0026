package gate

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"spamgate/internal/admin"
	"spamgate/smtpfilter/nexthop"
)

// TestReady: a load balancer is told to wait while any next hop is down, or has not answered yet.
// Only what is down for sure is a problem of mail.
func TestReady(t *testing.T) {
	up, err := nexthop.NewMaildir(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	server := func() nexthop.Target {
		s, err := nexthop.NewSMTP(nexthop.SMTPConfig{Addr: "127.0.0.1:1", ProbeInterval: -1,
			Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused") }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	unknown, down := server(), server()
	nexthop.Check(t.Context(), down, 0)
	for _, c := range []struct {
		what          string
		hops          nextHops
		ready, passes bool
	}{
		{"up", nextHops{{target: up}}, true, true},
		{"up, and down", nextHops{{target: up}, {target: down}}, false, false},
		{"up, and not known", nextHops{{target: up}, {target: unknown}}, false, true},
		{"not known", nextHops{{target: unknown}}, false, true},
		{"down", nextHops{{target: down}}, false, false},
	} {
		g := &adminHandler{}
		g.current.Store(&activeConfig{hops: c.hops})
		if _, err := g.Ready(); err == nil {
			t.Errorf("%s: ready before it listens", c.what)
		}
		g.open.Store(&openAddresses{})
		if _, err := g.Ready(); (err == nil) != c.ready || (g.mailProblem() == "") != c.passes {
			t.Errorf("%s: ready: %v, mail: %q", c.what, err, g.mailProblem())
		}
	}
}

func TestCopyProblem(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration) *time.Time {
		instant := now.Add(-d)
		return &instant
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
