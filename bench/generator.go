package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// generatorCommand makes the program one that sends, in a process of its own as
// smtp-source is: so its processor time is known.
const generatorCommand = "generate"

// order is what a generator sends, and to whom. One of the three is set.
type order struct {
	Addr     netip.AddrPort
	Timed    *timedOrder
	Refusals *refusalOrder
	Flood    *floodOrder
}

// outcome is what a generator has measured.
type outcome struct {
	Seconds float64    // from the first connection to the last reply
	Waits   [2]float64 // of a timedOrder: how long a command waited, p50 and p99 in µs

	// What the parent adds.
	share float64       // of the machine, all cores together, that the generator took itself
	cpu   time.Duration // of the server
}

// generatorShare is the part of the machine that a generator may take where the
// latency of others is measured: if it takes more, that says more about it.
const generatorShare = 1.0 / 3

// generate has a process send to a target what is ordered.
func (s *servers) generate(ctx context.Context, to target, o order) (result outcome, err error) {
	if o.Addr, err = netip.ParseAddrPort(to.addr); err != nil {
		return result, err
	}
	text, err := json.Marshal(o)
	if err != nil {
		return result, err
	}
	self, err := os.Executable()
	if err != nil {
		return result, err
	}
	ctx, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, generatorCommand, string(text))
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	cpu, err := s.alone(ctx, to, func() error {
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%w: %s", err, strings.TrimSpace(problem.String()))
		}
		return nil
	})
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal(out.Bytes(), &result); err != nil {
		return result, err
	}
	spent := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	result.share = spent.Seconds() / result.Seconds / float64(runtime.NumCPU())
	result.cpu = cpu
	return result, nil
}

// serveOrder is the generator's process. It returns what it prints.
func serveOrder(text string) ([]byte, error) {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return nil, err
	}
	var result outcome
	var err error
	start := time.Now()
	switch {
	case o.Timed != nil:
		result.Waits, err = o.Timed.send(o.Addr)
	case o.Refusals != nil:
		err = o.Refusals.send(o.Addr)
	case o.Flood != nil:
		err = o.Flood.send(o.Addr)
	default:
		err = errors.New("an order without work")
	}
	if err != nil {
		return nil, err
	}
	result.Seconds = time.Since(start).Seconds()
	return json.Marshal(result)
}
