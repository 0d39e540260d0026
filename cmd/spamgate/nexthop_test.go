package main

import (
	"testing"
	"time"

	"spamgate/internal/config"
	"spamgate/smtpfilter/nexthop"
)

// TestGroupTimeouts: a client, who waits 5 minutes for RCPT, is still there when two
// next hops have said nothing. One alone has the time that the RFC gives it.
func TestGroupTimeouts(t *testing.T) {
	for _, addrs := range []config.Addresses{{"smtp://192.0.2.1:25"}, {"smtp://192.0.2.1:25", "smtp://192.0.2.2:25"}} {
		sc, err := smtpConfig(&config.Config{NextHop: config.NextHop{Addr: addrs}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		alone := len(addrs) == 1
		limit := sc.Timeouts
		if alone != (limit == nexthop.Timeouts{}) {
			t.Errorf("%v: %+v", addrs, limit)
		}
		for _, d := range []time.Duration{limit.Connect, limit.Greeting, limit.Mail} {
			if !alone && (d == 0 || 2*d >= 5*time.Minute) {
				t.Errorf("%v: %+v", addrs, limit)
			}
		}
	}
}
