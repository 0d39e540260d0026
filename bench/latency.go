package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// latencyTargets are compared.
var latencyTargets = []string{direct, haproxy, gateNone, gateXforward, gateAuto}

// latencySessions is how many clients send at a time.
const latencySessions = 10

// latencyRow is how long a command waited for its reply, in microseconds, by
// target and round.
type latencyRow struct {
	HalfLoad          float64              `json:"half_load_messages_a_second"` // the most that MessagesPerSecond may be
	MessagesPerSecond float64              `json:"messages_a_second"`
	Messages          int                  `json:"messages"`
	P50               map[string][]float64 `json:"p50_us"`
	P99               map[string][]float64 `json:"p99_us"`
	Generator         map[string][]float64 `json:"generator_share_of_machine"`
}

// latencySeconds is how long one run lasts at most, where the rate is low.
const latencySeconds = 3

// benchmarkLatency sends to each target at the same rate: half of what the slowest
// gate reaches, or less if the generator would take too much of the machine.
func (s *servers) benchmarkLatency(ctx context.Context, o options, most float64, w io.Writer) (*latencyRow, error) {
	rate, err := s.latencyRate(ctx, o.messages, most/2, w)
	if err != nil {
		return nil, err
	}
	r := &latencyRow{HalfLoad: most / 2, MessagesPerSecond: rate, Messages: latencyMessages(o.messages, rate),
		P50: map[string][]float64{}, P99: map[string][]float64{}, Generator: map[string][]float64{}}
	for round := range o.rounds {
		fmt.Fprintf(w, "latency at %.0f messages a second: round %d of %d\n", r.MessagesPerSecond, round+1, o.rounds)
		for i := range latencyTargets {
			to := s.target(latencyTargets[(i+round)%len(latencyTargets)])
			result, err := s.generate(ctx, to, order{Timed: &timedOrder{r.Messages, rate}})
			if err != nil {
				return nil, fmt.Errorf("latency, %s: %w", to.name, err)
			}
			r.P50[to.name] = append(r.P50[to.name], result.Waits[0])
			r.P99[to.name] = append(r.P99[to.name], result.Waits[1])
			r.Generator[to.name] = append(r.Generator[to.name], result.share)
		}
	}
	return r, nil
}

// latencyMessages is how many messages of n are sent at a rate.
func latencyMessages(n int, rate float64) int {
	return max(min(n, int(rate*latencySeconds)), latencySessions)
}

// latencyRate looks for a rate, at most the one given, at which the generator
// leaves most of the machine to the others. Through HAProxy it costs what it does
// through all: the generator sleeps between a command and its reply.
func (s *servers) latencyRate(ctx context.Context, messages int, rate float64, w io.Writer) (float64, error) {
	const tries, goal = 4, 0.8 * generatorShare // a margin, for the rounds that follow
	for range tries {
		result, err := s.generate(ctx, s.target(haproxy), order{Timed: &timedOrder{latencyMessages(messages, rate), rate}})
		if err != nil {
			return 0, fmt.Errorf("latency, looking for a rate: %w", err)
		}
		fmt.Fprintf(w, "at %.0f messages a second the generator takes %.0f%% of the machine\n", rate, 100*result.share)
		if result.share <= generatorShare*0.9 {
			break
		}
		rate *= goal / result.share
	}
	return rate, nil
}

// timedOrder is messages of 4 KiB over kept connections, at a rate.
type timedOrder struct {
	Messages int
	Rate     float64 // a second
}

// send sends them, and returns how long a command waited for its reply: p50 and p99
// in microseconds. A message that is late does not put off the others: each session
// has its times from the beginning.
func (o timedOrder) send(addr netip.AddrPort) (waits [2]float64, err error) {
	// Each session runs when the kernel wakes it, and does not wait for another here.
	runtime.GOMAXPROCS(latencySessions + 1)
	var mu sync.Mutex
	var all []time.Duration
	var wg sync.WaitGroup
	start := time.Now()
	interval := time.Duration(float64(latencySessions) / o.Rate * float64(time.Second))
	for i := range latencySessions {
		wg.Go(func() {
			first := start.Add(interval * time.Duration(i) / latencySessions)
			waits, sessionErr := timedSession(addr, max(o.Messages/latencySessions, 1), first, interval)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, waits...)
			if sessionErr != nil {
				err = sessionErr
			}
		})
	}
	wg.Wait()
	if err != nil {
		return waits, err
	}
	slices.Sort(all)
	at := func(q float64) float64 { return float64(all[int(q*float64(len(all)-1))]) / 1e3 }
	return [2]float64{at(0.50), at(0.99)}, nil
}

// timedSession sends n messages, one each interval.
func timedSession(addr netip.AddrPort, n int, next time.Time, interval time.Duration) ([]time.Duration, error) {
	c := newClient()
	if err := c.dial(addr); err != nil {
		return nil, err
	}
	defer c.close()
	message := "From: <sender@clean.example>\r\nSubject: latency\r\n\r\n" + strings.Repeat(strings.Repeat("x", 62)+"\r\n", 64) + ".\r\n"
	waits := make([]time.Duration, 0, 4*n)
	for range n {
		time.Sleep(time.Until(next))
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
