package main

import (
	"context"
	"io"
	"net/netip"
	"sync"
	"sync/atomic"
)

// listedSender is an address at a subdomain of a listed domain.
const listedSender = "x@news.0-180.com"

// refusalsPerConnection is below the gate's limit (max_refusals).
const refusalsPerConnection = 50

// refusers are the targets that have the list. What a gate tells the sink about a
// client does not matter for a refusal, so one gate stands for the three.
var refusers = []string{postfix, gateAuto, gateBefore}

// manners are the ways in which one client asks for refusals.
var manners = []struct {
	name            string
	keep, pipelined bool
}{
	{"a connection each", false, false},
	{"connections kept", true, false},
	{"connections kept, commands pipelined", true, true},
}

// refusalRow is the rate at which listed senders were refused.
type refusalRow struct {
	Manner   string  `json:"manner"`
	Refusals int     `json:"refusals"`
	Rates    figures `json:"refusals_a_second"`
}

// benchmarkRefusals lets one client ask for refusals alone.
func (s *servers) benchmarkRefusals(ctx context.Context, o options, r *report, w io.Writer) error {
	for _, how := range manners {
		row := refusalRow{Manner: how.name, Refusals: o.messages, Rates: figures{}}
		r.Refusals = append(r.Refusals, row)
		err := s.inTurns(w, o.rounds, "refusals, one client, "+how.name, refusers, func(to target) error {
			result, err := s.generate(ctx, to, order{Refusals: &refusalOrder{o.messages, how.keep, how.pipelined}})
			if err == nil {
				row.Rates.add(to.name, float64(o.messages)/result.Seconds)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// floodClients is how many clients connect at once: as many as the gate allows an
// address beyond loopback by default (client_connections).
const floodClients = 50

// floodRow is the result of a flood of listed senders: each opens a connection,
// is refused at RCPT, and quits.
type floodRow struct {
	Clients   int     `json:"clients"`
	Refusals  int     `json:"refusals"`
	Rates     figures `json:"refusals_a_second"`
	CPU       figures `json:"cpu_us_a_refusal"`
	Generator figures `json:"generator_share_of_machine"`
}

// benchmarkFlood lets many clients at once ask for a refusal each.
func (s *servers) benchmarkFlood(ctx context.Context, o options, r *floodRow, w io.Writer) error {
	*r = floodRow{Clients: min(floodClients, o.messages), Refusals: o.messages, Rates: figures{}, CPU: figures{}, Generator: figures{}}
	flood := func(to target, refusals int) (outcome, error) {
		return s.generate(ctx, to, order{Flood: &floodOrder{r.Clients, refusals}})
	}
	for _, name := range refusers { // a short flood that does not count: Postfix starts its processes
		if to := s.target(name); to.name != "" {
			if _, err := flood(to, 2*r.Clients); err != nil {
				return err
			}
		}
	}
	return s.inTurns(w, o.rounds, "a flood of refusals", refusers, func(to target) error {
		result, err := flood(to, r.Refusals)
		if err == nil {
			r.Rates.add(to.name, float64(r.Refusals)/result.Seconds)
			r.CPU.add(to.name, result.cpu.all.Seconds()*1e6/float64(r.Refusals))
			r.Generator.add(to.name, result.share)
		}
		return err
	})
}

// refusalOrder is one client that is refused so many times.
type refusalOrder struct {
	Refusals  int
	Keep      bool // a connection for more than one refusal
	Pipelined bool // MAIL, RCPT and RSET go out at once (RFC 2920)
}

// send returns an error if the server does not refuse each time.
func (o refusalOrder) send(addr netip.AddrPort) error {
	each := 1
	if o.Keep {
		each = refusalsPerConnection
	}
	c := newClient()
	for n := o.Refusals; n > 0; n -= each {
		err := c.session(addr, func() error {
			for range min(each, n) {
				if err := c.refusal(o.Pipelined, true); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// floodOrder is many clients at once, with a connection for every refusal.
type floodOrder struct{ Clients, Refusals int }

// send returns an error if the server does not refuse each time.
func (o floodOrder) send(addr netip.AddrPort) error {
	var left atomic.Int64
	left.Store(int64(o.Refusals))
	failed := make(chan error, o.Clients)
	var wg sync.WaitGroup
	for range o.Clients {
		wg.Go(func() {
			c := newClient()
			for left.Add(-1) >= 0 {
				if err := c.session(addr, func() error { return c.refusal(false, false) }); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(failed)
	return <-failed
}

// The commands of a refusal. Postfix and the gate both refuse at RCPT, not at MAIL.
const (
	mailListed = "MAIL FROM:<" + listedSender + ">\r\n"
	rcptListed = "RCPT TO:<recipient@example.net>\r\n"
)

// refusal asks for one refusal; with reset it ends the transaction, for another.
func (c *client) refusal(pipelined, reset bool) error {
	steps := [][2]string{{"250", mailListed}, {"55", rcptListed}, {"250", "RSET\r\n"}}
	if !reset {
		steps = steps[:2]
	}
	if pipelined {
		if _, err := io.WriteString(c.conn, mailListed+rcptListed+"RSET\r\n"); err != nil {
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
