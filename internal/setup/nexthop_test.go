package setup

import (
	"testing"
	"time"

	"spamgate/internal/config"
	"spamgate/smtpfilter/nexthop"
)

// TestTimeouts: with the defaults a client, who waits 5 minutes for RCPT (RFC 5321,
// section 4.5.3.2.3), is still there when two next hops have used up their time, and the
// waits behind a message are those of the RFC.
func TestTimeouts(t *testing.T) {
	c := config.Default()
	sc, err := smtpConfig("gate.example", c.NextHop, nil)
	if err != nil {
		t.Fatal(err)
	}
	limit := sc.Timeouts
	if both := 2 * (limit.Connect + limit.Mail); both >= 5*time.Minute {
		t.Errorf("two next hops may take %v", both)
	}
	if limit.Suspect <= 0 || limit.Suspect > limit.Connect || limit.Rcpt != limit.Mail || limit.Data != limit.Mail {
		t.Errorf("%+v", limit)
	}
	if limit.Dot != 0 || limit.Write != 0 {
		t.Errorf("behind the message: %v, %v, want the package's own", limit.Dot, limit.Write)
	}
	c.NextHop.ReplyTimeout, c.NextHop.ConnectTimeout, c.NextHop.MessagesPerConnection = time.Second, time.Second, 7
	if sc, err = smtpConfig("gate.example", c.NextHop, nil); err != nil {
		t.Fatal(err)
	}
	want := nexthop.Timeouts{Connect: time.Second, Greeting: time.Second, Hello: time.Second,
		Mail: time.Second, Rcpt: time.Second, Data: time.Second, Suspect: time.Second}
	if sc.Timeouts != want || sc.MessagesPerConnection != 7 {
		t.Errorf("%+v, %d messages a connection", sc.Timeouts, sc.MessagesPerConnection)
	}
}
