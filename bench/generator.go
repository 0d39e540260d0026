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

// generatorCommand is the subcommand that sends mail, in a process of its own like
// smtp-source: that makes its CPU time known.
const generatorCommand = "generate"

// order tells a generator what to send, and where. One of the three is set.
type order struct {
	Addr     netip.AddrPort
	Timed    *timedOrder
	Refusals *refusalOrder
	Flood    *floodOrder
}

// outcome is the result of a generator.
type outcome struct {
	Seconds float64    // from the first connection to the last reply
	Waits   [2]float64 // of a timedOrder: how long a command waited, p50 and p99 in µs

	// Added by the parent process.
	share float64 // of the machine, all cores together, that the generator itself used
	cpu   usage   // of the server
}

// generatorShare is the part of the machine that a generator may use while it
// measures latency: above it, it mostly measures itself.
const generatorShare = 1.0 / 3

// generate runs a generator in a process of its own.
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

// serveOrder is the generator's process. It returns its output, an outcome.
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
