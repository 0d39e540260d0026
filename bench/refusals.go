package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
)

// listedSender is on the list: a domain of it, and a subdomain's address.
const listedSender = "x@news.0-180.com"

// refusalsPerConnection is below what the gate puts up with (max_refusals).
const refusalsPerConnection = 50

// refusers are the targets that know the list. What the sink is told of a client
// has no part in a refusal, so one gate stands for the three.
var refusers = []string{postfix, gateAuto}

// manner is how the one client asks.
type manner struct {
	name      string
	keep      bool // a connection is kept for more than one refusal
	pipelined bool // MAIL, RCPT and RSET go out at once (RFC 2920)
}

var manners = []manner{
	{"a connection each", false, false},
	{"connections kept", true, false},
	{"connections kept, commands pipelined", true, true},
}

// refusalRow is how many listed senders a second were refused, by target and
// round.
type refusalRow struct {
	Manner   string               `json:"manner"`
	Refusals int                  `json:"refusals"`
	Rates    map[string][]float64 `json:"refusals_a_second"`
}

// benchmarkRefusals has one client ask for nothing but refusals.
func (s *servers) benchmarkRefusals(ctx context.Context, o options, w io.Writer) ([]refusalRow, error) {
	var rows []refusalRow
	for _, how := range manners {
		row := refusalRow{Manner: how.name, Refusals: o.messages, Rates: map[string][]float64{}}
		for round := range o.rounds {
			fmt.Fprintf(w, "refusals, one client, %s: round %d of %d\n", how.name, round+1, o.rounds)
			for i := range refusers {
				to := s.target(refusers[(i+round)%len(refusers)])
				result, err := s.generate(ctx, to, order{Refusals: &refusalOrder{o.messages, how.keep, how.pipelined}})
				if err != nil {
					return nil, fmt.Errorf("refusals, %s: %w", to.name, err)
				}
				row.Rates[to.name] = append(row.Rates[to.name], float64(o.messages)/result.Seconds)
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// refusalOrder is one client that is refused so many times.
type refusalOrder struct {
	Refusals        int
	Keep, Pipelined bool
}

// send fails if it is not refused once.
func (o refusalOrder) send(addr netip.AddrPort) error {
	each := 1
	if o.Keep {
		each = refusalsPerConnection
	}
	c := newClient()
	for n := o.Refusals; n > 0; {
		if err := c.dial(addr); err != nil {
			return err
		}
		var err error
		for i := 0; i < each && n > 0 && err == nil; i++ {
			n--
			err = c.refused(o.Pipelined)
		}
		if closeErr := c.close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// What a client that is to be refused sends. Both answer so to RCPT, not to MAIL.
const (
	mailListed = "MAIL FROM:<" + listedSender + ">\r\n"
	rcptListed = "RCPT TO:<recipient@example.net>\r\n"
)

// refused asks for one refusal, and for the next transaction.
func (c *client) refused(pipelined bool) error {
	steps := [][2]string{{"250", mailListed}, {"55", rcptListed}, {"250", "RSET\r\n"}}
	if pipelined {
		if _, err := io.WriteString(c.conn, steps[0][1]+steps[1][1]+steps[2][1]); err != nil {
			return err
		}
	}
	for _, step := range steps {
		text := step[1]
		if pipelined {
			text = ""
		}
		if err := c.want(step[0], text); err != nil {
			return err
		}
	}
	return nil
}
