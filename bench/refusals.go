package main

import (
	"context"
	"fmt"
	"io"
	"time"
)

// listedSender is on the list: a domain of it, and a subdomain's address.
const listedSender = "x@news.0-180.com"

// refusalsPerConnection is below what the gate puts up with (max_refusals).
const refusalsPerConnection = 50

// refusers are the targets that know the list.
var refusers = []string{postfix, gate}

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
			fmt.Fprintf(w, "refusals, %s: round %d of %d\n", how.name, round+1, o.rounds)
			for i := range refusers {
				to := s.target(refusers[(i+round)%len(refusers)])
				start := time.Now()
				if err := refusals(ctx, to.addr, o.messages, how); err != nil {
					return nil, fmt.Errorf("refusals, %s: %w", to.name, err)
				}
				row.Rates[to.name] = append(row.Rates[to.name], float64(o.messages)/time.Since(start).Seconds())
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// refusals is refused n times, and fails if it once is not.
func refusals(ctx context.Context, addr string, n int, how manner) error {
	each := 1
	if how.keep {
		each = refusalsPerConnection
	}
	for n > 0 {
		c, err := dialClient(ctx, addr)
		if err != nil {
			return err
		}
		for i := 0; i < each && n > 0 && err == nil; i++ {
			n--
			err = c.refused(how.pipelined)
		}
		c.close()
		if err != nil {
			return err
		}
	}
	return nil
}

// refused asks for one refusal.
func (c *client) refused(pipelined bool) error {
	steps := [][2]string{
		{"250", "MAIL FROM:<" + listedSender + ">\r\n"},
		{"55", "RCPT TO:<recipient@example.net>\r\n"},
		{"250", "RSET\r\n"},
	}
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
