package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// latencyTargets are compared; direct is what the others add to.
var latencyTargets = []string{direct, haproxy, gate}

// latencySessions is how many clients send at a time.
const latencySessions = 10

// latencyRow is how long a command waited for its reply, in microseconds, by
// target and round.
type latencyRow struct {
	MessagesPerSecond float64              `json:"messages_a_second"`
	Messages          int                  `json:"messages"`
	P50               map[string][]float64 `json:"p50_us"`
	P99               map[string][]float64 `json:"p99_us"`
}

// benchmarkLatency sends at half of the rate that the gate has reached with
// connections kept, to each target the same.
func (s *servers) benchmarkLatency(ctx context.Context, o options, rate float64, w io.Writer) (*latencyRow, error) {
	r := &latencyRow{MessagesPerSecond: rate / 2, Messages: o.messages, P50: map[string][]float64{}, P99: map[string][]float64{}}
	for round := range o.rounds {
		fmt.Fprintf(w, "latency at %.0f messages a second: round %d of %d\n", r.MessagesPerSecond, round+1, o.rounds)
		for i := range latencyTargets {
			to := s.target(latencyTargets[(i+round)%len(latencyTargets)])
			waits, err := latencies(ctx, to.addr, o.messages, r.MessagesPerSecond)
			if err != nil {
				return nil, fmt.Errorf("latency, %s: %w", to.name, err)
			}
			slices.Sort(waits)
			at := func(q float64) float64 { return float64(waits[int(q*float64(len(waits)-1))]) / 1e3 }
			r.P50[to.name] = append(r.P50[to.name], at(0.50))
			r.P99[to.name] = append(r.P99[to.name], at(0.99))
		}
	}
	return r, nil
}

// latencies sends n messages of 4 KiB over kept connections at a rate, and
// returns how long each of their commands took. A message that is late does not
// put off the others: each session has its times from the beginning.
func latencies(ctx context.Context, addr string, n int, rate float64) ([]time.Duration, error) {
	var mu sync.Mutex
	var all []time.Duration
	var failed error
	var wg sync.WaitGroup
	start := time.Now()
	interval := time.Duration(float64(latencySessions) / rate * float64(time.Second))
	for i := range latencySessions {
		wg.Go(func() {
			first := start.Add(interval * time.Duration(i) / latencySessions)
			waits, err := timedSession(ctx, addr, max(n/latencySessions, 1), first, interval)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, waits...)
			if err != nil {
				failed = err
			}
		})
	}
	wg.Wait()
	return all, failed
}

// timedSession sends n messages, one each interval.
func timedSession(ctx context.Context, addr string, n int, next time.Time, interval time.Duration) ([]time.Duration, error) {
	c, err := dialClient(ctx, addr)
	if err != nil {
		return nil, err
	}
	defer c.close()
	message := "From: <sender@clean.example>\r\nSubject: latency\r\n\r\n" + strings.Repeat(strings.Repeat("x", 62)+"\r\n", 64) + ".\r\n"
	waits := make([]time.Duration, 0, 4*n)
	for range n {
		select {
		case <-time.After(time.Until(next)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		next = next.Add(interval)
		for _, step := range [][2]string{
			{"250", "MAIL FROM:<sender@clean.example>\r\n"},
			{"250", "RCPT TO:<recipient@example.net>\r\n"},
			{"354", "DATA\r\n"},
			{"250", message},
		} {
			began := time.Now()
			if err := c.want(step[0], step[1]); err != nil {
				return nil, err
			}
			waits = append(waits, time.Since(began))
		}
	}
	return waits, nil
}
