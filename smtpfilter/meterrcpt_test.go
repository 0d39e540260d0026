package smtpfilter_test

import (
	"maps"
	"testing"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
)

// TestMeterRecipients has the next hop fail at recipients. Each message must count as
// failed once, whatever its client sends afterwards.
func TestMeterRecipients(t *testing.T) {
	const mail, good, bad = "MAIL FROM:<a@example.com>", "RCPT TO:<b@example.net>", "RCPT TO:<bad@example.net>"
	const refused = "RCPT TO:<refused@example.net>"
	for name, c := range map[string]struct {
		commands []string
		want     map[string]int
	}{
		"one recipient":        {[]string{mail, bad}, map[string]int{"failed": 1, "recipient failed": 1}},
		"three recipients":     {[]string{mail, bad, bad, bad}, map[string]int{"failed": 1, "recipient failed": 3}},
		"DATA all the same":    {[]string{mail, bad, bad, "DATA"}, map[string]int{"failed": 1, "recipient failed": 2}},
		"behind a good one":    {[]string{mail, good, bad, "DATA", "."}, map[string]int{"failed": 1, "recipient accepted": 1, "recipient failed": 1}},
		"two messages":         {[]string{mail, bad, "RSET", mail, bad}, map[string]int{"failed": 2, "recipient failed": 2}},
		"then a good message":  {[]string{mail, bad, "RSET", mail, good, "DATA", "."}, map[string]int{"failed": 1, "accepted": 1, "recipient accepted": 1, "recipient failed": 1}},
		"refused is no matter": {[]string{mail, refused}, map[string]int{"recipient refused_by_next_hop": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			sink := smtptest.NewSink(t)
			sink.SetReply(bad, smtptest.Close)
			sink.SetReply(refused, "550 5.1.1 no")
			meter := &tally{ended: make(chan struct{})}
			g := newGate(t, gateOptions{nextHop: sink.Addr(), meter: meter, policy: smtpfilter.Policy{}})
			conn := dial(t, g.addr)
			conn.readReply()
			for _, command := range append(append([]string{"HELO client.example"}, c.commands...), "QUIT") {
				conn.send(command + "\r\n")
				conn.readReply()
			}
			conn.Close()
			<-meter.ended
			c.want["connected"], c.want["disconnected"] = 1, 1
			if !maps.Equal(meter.counts, c.want) {
				t.Errorf("counted %v, want %v", meter.counts, c.want)
			}
		})
	}
}
