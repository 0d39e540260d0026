package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"spamgate/internal/disposable"
)

// target is a way from smtp-source to the sink.
type target struct {
	name   string
	addr   string
	server *process // nil: there is nothing between the two
	gate   bool
}

const (
	direct  = "direct"
	haproxy = "HAProxy"
	postfix = "Postfix"
	plain   = "go-smtp"
)

// A gate for each way to tell the sink who its client is. HAProxy in TCP mode does
// not tell it, so none is what compares like with like; auto is the default.
const (
	gateNone     = "spamgate none"
	gateXforward = "spamgate xforward"
	gateAuto     = "spamgate auto"
)

// gates are the gates' names, and what identity is in their configuration.
var gates = []struct{ name, identity string }{
	{gateNone, "none"}, {gateXforward, "xforward"}, {gateAuto, "auto"},
}

// names are the targets in the order of the report.
var names = []string{direct, haproxy, postfix, plain, gateNone, gateXforward, gateAuto}

// servers is all that runs while measuring.
type servers struct {
	dir     string // each process has a directory in it to itself
	sink    *process
	targets []target
	idle    map[string]idleness
	cleanup []func()
}

// startServers starts the sink, and all that is compared in front of it. Errors
// leave running what stop then ends. With reuse the gates keep their connections
// to the sink.
func startServers(ctx context.Context, t tools, root, dir string, reuse bool) (s *servers, err error) {
	s = &servers{dir: dir, idle: map[string]idleness{}}
	addrs, err := freeAddrs(len(names))
	if err != nil {
		return s, err
	}
	sinkAddr, haproxyAddr, postfixAddr, plainAddr := addrs[0], addrs[1], addrs[2], addrs[3]
	if err := s.startSink(ctx, t, sinkAddr); err != nil {
		return s, err
	}
	s.targets = []target{{name: direct, addr: sinkAddr}}
	if err := s.startHAProxy(ctx, t, haproxyAddr, sinkAddr); err != nil {
		return s, err
	}
	if err := s.startPostfix(ctx, t, postfixAddr, sinkAddr); err != nil {
		return s, err
	}
	if err := s.startPlain(ctx, plainAddr, sinkAddr); err != nil {
		return s, err
	}
	binary, err := buildGate(ctx, t, root, dir)
	if err != nil {
		return s, err
	}
	for i, g := range gates {
		addr := addrs[4+i]
		config := fmt.Appendf(nil, gateConfig, addr, "smtp://"+sinkAddr, reuse, g.identity)
		if err := s.startGate(ctx, g.name, binary, addr, config); err != nil {
			return s, err
		}
	}
	return s, nil
}

// makeDir makes the directory of a process. No other process writes to it: the
// gate watches its lists' directory and the one above, and would be woken.
func (s *servers) makeDir(name string) (string, error) {
	dir := filepath.Join(s.dir, strings.ReplaceAll(name, " ", "-"))
	return dir, os.Mkdir(dir, 0o700)
}

func (s *servers) stop() {
	for _, t := range s.targets {
		if t.server != nil {
			t.server.stop()
		}
	}
	if s.sink != nil {
		s.sink.stop()
	}
	for _, f := range s.cleanup {
		f()
	}
}

// startSink starts smtp-sink, which counts (-c) and throws away.
func (s *servers) startSink(ctx context.Context, t tools, addr string) (err error) {
	args := []string{"-c"}
	if os.Geteuid() == 0 {
		args = append(args, "-u", "nobody") // as root it insists on a user
	}
	dir, err := s.makeDir("smtp-sink")
	if err != nil {
		return err
	}
	if s.sink, err = startProcess(dir, "smtp-sink", t.sink, append(args, addr, "1000")...); err != nil {
		return err
	}
	return s.sink.waitReady(ctx, addr)
}

const haproxyConfig = `global
    maxconn 1000
defaults
    mode tcp
    timeout connect 5s
    timeout client 1m
    timeout server 1m
listen smtp
    bind %s
    server sink %s
`

// startHAProxy starts HAProxy in TCP mode, with as many threads as it wants and
// without a log.
func (s *servers) startHAProxy(ctx context.Context, t tools, addr, sink string) error {
	dir, err := s.makeDir(haproxy)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "haproxy.cfg")
	if err := os.WriteFile(file, fmt.Appendf(nil, haproxyConfig, addr, sink), 0o600); err != nil {
		return err
	}
	p, err := startProcess(dir, haproxy, t.haproxy, "-db", "-f", file)
	if err != nil {
		return err
	}
	s.targets = append(s.targets, target{name: haproxy, addr: addr, server: p})
	return p.waitReady(ctx, addr)
}

// startPlain starts this program once more, as a proxy of go-smtp alone.
func (s *servers) startPlain(ctx context.Context, addr, sink string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := s.makeDir(plain)
	if err != nil {
		return err
	}
	p, err := startProcess(dir, plain, self, plainCommand, addr, sink)
	if err != nil {
		return err
	}
	s.targets = append(s.targets, target{name: plain, addr: addr, server: p})
	return p.waitReady(ctx, addr)
}

// gateConfig leaves all else as it is by default: header senders are judged
// too, and a line is logged a message. A key that all gates are to have is a line
// more here.
const gateConfig = `hostname = "gate.example"
[listen]
addr = %q
[next_hop]
addr = %q
reuse = %t
identity = %q
[state]
dir = "../state"
[[list]]
name = "disposable"
path = "lists/disposable.txt"
type = "block"
`

// buildGate builds the gate from the checkout.
func buildGate(ctx context.Context, t tools, root, dir string) (binary string, err error) {
	binary = filepath.Join(dir, "spamgate")
	build := exec.CommandContext(ctx, t.goTool, "build", "-buildvcs=false", "-o", binary, "./cmd/spamgate")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the gate: %w\n%s", err, out)
	}
	return binary, nil
}

// startGate starts a gate with the real list. Its configuration has a directory
// of its own, as it has in /etc, and so has the list below it: log and state are
// beside, not in what the gate watches.
func (s *servers) startGate(ctx context.Context, name, binary, addr string, config []byte) error {
	dir, err := s.makeDir(name)
	if err != nil {
		return err
	}
	lists := filepath.Join(dir, "etc", "lists")
	if err := os.MkdirAll(lists, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(lists, "disposable.txt"), disposable.Text(), 0o600); err != nil {
		return err
	}
	file := filepath.Join(dir, "etc", "config.toml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return err
	}
	p, err := startProcess(dir, name, binary, "serve", "--config", file)
	if err != nil {
		return err
	}
	s.targets = append(s.targets, target{name: name, addr: addr, server: p, gate: true})
	return p.waitReady(ctx, addr)
}

// received is how many messages the sink has taken so far.
func (s *servers) received() (int, error) {
	text, err := os.ReadFile(s.sink.logPath)
	if err != nil {
		return 0, err
	}
	return lastCount(text), nil
}

// lastCount reads what smtp-sink -c writes, each time over the last:
// "sess=12 quit=11 mesg=11\r".
func lastCount(text []byte) int {
	end := bytes.LastIndexByte(text, '\r')
	if end < 0 {
		return 0
	}
	_, number, _ := bytes.Cut(text[bytes.LastIndexByte(text[:end], '\r')+1:end], []byte("mesg="))
	n, _ := strconv.Atoi(string(bytes.TrimSpace(number)))
	return n
}

// decided is how many messages the gate has logged as accepted so far.
func (t target) decided() (int, error) {
	text, err := os.ReadFile(t.server.logPath)
	return bytes.Count(text, []byte(" msg=accepted ")), err
}
