package smtpfilter_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/limit"
	"spamgate/smtpfilter/wire"
)

// tally is a Meter that keeps the counts.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
	ended  chan struct{} // closed with the connection
}

func (m *tally) add(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counts == nil {
		m.counts = map[string]int{}
	}
	m.counts[what]++
}

func (m *tally) Connected(string)    { m.add("connected") }
func (m *tally) Disconnected(string) { m.add("disconnected"); close(m.ended) }

func (m *tally) Message(_ string, o smtpfilter.Outcome) { m.add(o.String()) }

func (m *tally) Recipient(_ string, o smtpfilter.RecipientOutcome) { m.add("recipient " + o.String()) }
func (m *tally) Limited(_ string, r limit.Result)                  { m.add("limited " + r.Key()) }
func (m *tally) Auth(_ string, o smtpfilter.AuthOutcome)           { m.add("auth " + o.String()) }

// TestMeter ends a message in each possible way.
func TestMeter(t *testing.T) {
	const end = ".\r\n"
	tests := []struct {
		outcome smtpfilter.Outcome
		message string
		reply   string // "" : the client hangs up
		sink    [2]string
		limit   int64
	}{
		{outcome: smtpfilter.OutcomeAccepted, message: "\r\nbody\r\n" + end, reply: "250"},
		{outcome: smtpfilter.OutcomeDiscarded, message: "From: x@dropped.example\r\n\r\n" + end, reply: "250"},
		{outcome: smtpfilter.OutcomeListed, message: "From: x@listed.example\r\n\r\n" + end, reply: "550"},
		{outcome: smtpfilter.OutcomeListed, message: "From: x@later.example\r\n\r\n" + end, reply: "451"},
		{outcome: smtpfilter.OutcomeRefused, message: "\r\na\nb\r\n" + end, reply: "550"},
		{outcome: smtpfilter.OutcomeRefused, message: "\r\n" + strings.Repeat("long\r\n", 100) + end, reply: "552", limit: 100},
		{outcome: smtpfilter.OutcomeRefused, message: strings.Repeat("Received: x\r\n", 101) + "\r\n" + end, reply: "554"},
		{outcome: smtpfilter.OutcomeNextHop, message: "\r\n" + end, reply: "550", sink: [2]string{".", "550 no"}},
		{outcome: smtpfilter.OutcomeNextHop, message: "\r\n" + end, reply: "450", sink: [2]string{"DATA", "450 later"}},
		{outcome: smtpfilter.OutcomeAbandoned, message: "\r\nhalf of"},
	}
	for _, test := range tests {
		t.Run(fmt.Sprint(test.outcome, " ", test.reply), func(t *testing.T) {
			sink := smtptest.NewSink(t)
			if test.sink[0] != "" {
				sink.SetReply(test.sink[0], test.sink[1])
			}
			meter := &tally{ended: make(chan struct{})}
			g := newGate(t, gateOptions{
				nextHop: sink.Addr(), meter: meter, wire: smtpfilter.Settings{Rules: wire.Rules{MaxMessageBytes: test.limit}},
				policy: smtpfilter.Policy{HeaderFields: []string{"From"}},
				checker: mustJudge(t, "header @dropped.example discard", "header @listed.example reject",
					"header @later.example defer"),
			})
			c := dial(t, g.addr)
			c.toData("a@example.com")
			c.send(test.message)
			if test.reply != "" {
				c.reply(test.reply)
				c.send("QUIT\r\n")
				c.readReply()
			}
			c.Close()
			<-meter.ended
			want := map[string]int{"connected": 1, "disconnected": 1, test.outcome.String(): 1, "recipient accepted": 1}
			if !maps.Equal(meter.counts, want) {
				t.Errorf("counted %v, want %v", meter.counts, want)
			}
		})
	}
	if all := smtpfilter.Outcomes(); len(all) != 9 || slices.Contains(all, smtpfilter.Outcome(len(all))) {
		t.Errorf("outcomes: %v", all)
	}
}
