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

// latencyTargets are the targets whose latency is measured.
var latencyTargets = []string{direct, haproxy, gateNone, gateXforward, gateAuto, gateBefore}

// latencySessions is how many clients send at once.
const latencySessions = 10

// latencyRow is how long a command waited for its reply, in microseconds.
type latencyRow struct {
	HalfLoad          float64 `json:"half_load_messages_a_second"` // the upper bound of MessagesPerSecond
	MessagesPerSecond float64 `json:"messages_a_second"`
	Messages          int     `json:"messages"`
	P50               figures `json:"p50_us"`
	P99               figures `json:"p99_us"`
	Generator         figures `json:"generator_share_of_machine"`
}

// latencySeconds bounds the length of a run at a low rate.
const latencySeconds = 3

// benchmarkLatency sends to each target at the same rate: half of the slowest
// gate's, most, or less if the generator would use too much of the machine.
func (s *servers) benchmarkLatency(ctx context.Context, o options, most float64, r *latencyRow, w io.Writer) error {
	rate, err := s.latencyRate(ctx, o.messages, most/2, w)
	if err != nil {
		return err
	}
	*r = latencyRow{HalfLoad: most / 2, MessagesPerSecond: rate, Messages: latencyMessages(o.messages, rate),
		P50: figures{}, P99: figures{}, Generator: figures{}}
	return s.inTurns(w, o.rounds, fmt.Sprintf("latency at %.0f messages a second", rate), latencyTargets, func(to target) error {
		result, err := s.generate(ctx, to, order{Timed: &timedOrder{r.Messages, rate}})
		if err == nil {
			r.P50.add(to.name, result.Waits[0])
			r.P99.add(to.name, result.Waits[1])
			r.Generator.add(to.name, result.share)
		}
		return err
	})
}

// latencyMessages returns how many messages, at most n, a run at a rate sends.
func latencyMessages(n int, rate float64) int {
	return max(min(n, int(rate*latencySeconds)), latencySessions)
}

// latencyRate returns a rate, at most the one given, at which the generator leaves
// most of the machine to the others. It tries HAProxy alone, since the target
// hardly matters: the generator sleeps between a command and its reply.
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

// timedOrder is messages of 4 KiB over kept connections, at a fixed rate.
type timedOrder struct {
	Messages int
	Rate     float64 // a second
}

// send sends the messages, and returns how long a command waited for its reply:
// p50 and p99 in microseconds. A late message does not delay the others: the times
// of each session are fixed at the beginning.
func (o timedOrder) send(addr netip.AddrPort) (waits [2]float64, err error) {
	// With a thread each, no session waits for another to run.
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
	quantile := func(q float64) float64 { return float64(all[int(q*float64(len(all)-1))]) / 1e3 }
	return [2]float64{quantile(0.50), quantile(0.99)}, nil
}

// timedSession sends n messages, one each interval from next on, and returns how
// long each command waited.
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
