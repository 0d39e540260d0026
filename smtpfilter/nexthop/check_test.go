package nexthop

import (
	"context"
	"testing"
	"time"

	"spamgate/internal/smtptest"
)

// TestCheck: a target that accepted MAIL lately is not asked, and any other is, each member of
// a group for itself.
func TestCheck(t *testing.T) {
	first, a := newProbedHost(t, smtptest.Config{})
	second, b := newProbedHost(t, smtptest.Config{Replies: map[string]string{"MAIL": "451 4.3.0 not now"}})
	g, _ := testGroup(t, GroupConfig{clock: newTestClock().clock()}, a, b)
	check := func(fresh time.Duration, up bool, dials ...int) {
		t.Helper()
		states := Check(context.Background(), g, fresh)
		if len(states) != 2 || states[0].Up != up || states[1].Up || states[1].Err == nil || states[0].Target != a.String() {
			t.Fatalf("%+v", states)
		}
		if (states[0].Err == nil) != up || states[0].Passed.IsZero() || !states[1].Passed.IsZero() {
			t.Errorf("%+v", states)
		}
		first.check(dials[0], 0)
		second.check(dials[1], 0)
	}
	check(time.Hour, true, 1, 1)
	check(time.Hour, true, 1, 2)
	first.stop()
	check(time.Hour, true, 1, 3)
	check(0, false, 2, 4)
	check(time.Hour, false, 3, 5)
	first.start(smtptest.Config{})
	check(time.Hour, true, 4, 6)

	if s := Check(context.Background(), a, time.Hour); len(s) != 1 || !s[0].Up {
		t.Errorf("%+v", s)
	}
	// Without a probe, what the last message showed is all that is known.
	if s := Check(context.Background(), unprobed{a}, 0); len(s) != 1 || s[0].Err != nil {
		t.Errorf("%+v", s)
	}
}
