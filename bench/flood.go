package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"sync/atomic"
)

// floodClients is how many clients come at once. It is what the gate allows an
// address beyond loopback by default (client_connections).
const floodClients = 50

// floodRow is what a flood of listed senders met with, by target and round: each
// comes with a connection of its own, is refused at RCPT, and quits.
type floodRow struct {
	Clients   int                  `json:"clients"`
	Refusals  int                  `json:"refusals"`
	Rates     map[string][]float64 `json:"refusals_a_second"`
	CPU       map[string][]float64 `json:"cpu_us_a_refusal"`
	Generator map[string][]float64 `json:"generator_share_of_machine"`
}

// benchmarkFlood has many clients at once ask for a refusal each.
func (s *servers) benchmarkFlood(ctx context.Context, o options, w io.Writer) (*floodRow, error) {
	clients := min(floodClients, o.messages)
	r := &floodRow{Clients: clients, Refusals: o.messages,
		Rates: map[string][]float64{}, CPU: map[string][]float64{}, Generator: map[string][]float64{}}
	const what = "a flood of refusals"
	for _, name := range refusers { // a short one that does not count: Postfix starts its processes
		if _, err := s.generate(ctx, s.target(name), order{Flood: &floodOrder{clients, 2 * clients}}); err != nil {
			return nil, fmt.Errorf("%s, %s: %w", what, name, err)
		}
	}
	for round := range o.rounds {
		fmt.Fprintf(w, "%s, %d clients at once: round %d of %d\n", what, clients, round+1, o.rounds)
		for i := range refusers {
			to := s.target(refusers[(i+round)%len(refusers)])
			result, err := s.generate(ctx, to, order{Flood: &floodOrder{clients, r.Refusals}})
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", what, to.name, err)
			}
			r.Rates[to.name] = append(r.Rates[to.name], float64(r.Refusals)/result.Seconds)
			r.CPU[to.name] = append(r.CPU[to.name], result.cpu.Seconds()*1e6/float64(r.Refusals))
			r.Generator[to.name] = append(r.Generator[to.name], result.share)
		}
	}
	return r, nil
}

// floodOrder is many clients at once, a connection each for every refusal.
type floodOrder struct{ Clients, Refusals int }

// send fails if one of them is not refused.
func (o floodOrder) send(addr netip.AddrPort) error {
	var left atomic.Int64
	left.Store(int64(o.Refusals))
	failed := make(chan error, o.Clients)
	var wg sync.WaitGroup
	for range o.Clients {
		wg.Go(func() {
			c := newClient()
			for left.Add(-1) >= 0 {
				if err := c.floods(addr); err != nil {
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

// floods connects, is refused, and quits.
func (c *client) floods(addr netip.AddrPort) error {
	if err := c.dial(addr); err != nil {
		return err
	}
	err := c.want("250", mailListed)
	if err == nil {
		err = c.want("55", rcptListed)
	}
	if closeErr := c.close(); err == nil {
		err = closeErr
	}
	return err
}
