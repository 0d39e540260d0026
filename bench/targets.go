package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"spamgate/internal/disposable"
)

// target is a way from smtp-source to the sink.
type target struct {
	name   string
	addr   string
	server *process // nil: there is nothing between the two
	gate   bool
	many   bool // it is more than one process, so that its CPU time is not known
}

const (
	direct  = "direct"
	haproxy = "HAProxy"
	postfix = "Postfix"
	plain   = "go-smtp"
	gate    = "spamgate"
)

// names are the targets in the order of the report.
var names = []string{direct, haproxy, postfix, plain, gate}

// servers is all that runs while measuring.
type servers struct {
	dir     string
	sink    *process
	targets []target
	cleanup []func()
}

// startServers starts the sink, and HAProxy and the gate in front of it. Errors
// leave running what stop then ends. With reuse the gate keeps its connections
// to the sink.
func startServers(ctx context.Context, t tools, root, dir string, reuse bool) (s *servers, err error) {
	s = &servers{dir: dir}
	addrs, err := freeAddrs(len(names))
	if err != nil {
		return s, err
	}
	sinkAddr, haproxyAddr, postfixAddr, plainAddr, gateAddr := addrs[0], addrs[1], addrs[2], addrs[3], addrs[4]
	// The list has a directory to itself: the gate watches it, and the logs that
	// grow beside would keep waking it.
	lists := filepath.Join(s.dir, "lists")
	if err := os.Mkdir(lists, 0o700); err != nil {
		return s, err
	}
	list := filepath.Join(lists, "disposable.txt")
	if err := os.WriteFile(list, disposable.Text(), 0o600); err != nil {
		return s, err
	}
	if err := s.startSink(ctx, t, sinkAddr); err != nil {
		return s, err
	}
	s.targets = []target{{name: direct, addr: sinkAddr}}
	if err := s.startHAProxy(ctx, t, haproxyAddr, sinkAddr); err != nil {
		return s, err
	}
	if err := s.startPostfix(ctx, t, postfixAddr, sinkAddr, list); err != nil {
		return s, err
	}
	if err := s.startPlain(ctx, plainAddr, sinkAddr); err != nil {
		return s, err
	}
	config := fmt.Appendf(nil, gateConfig, gateAddr, "smtp://"+sinkAddr, reuse)
	return s, s.startGate(ctx, t, root, gateAddr, config)
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
	if s.sink, err = startProcess(s.dir, "smtp-sink", t.sink, append(args, addr, "1000")...); err != nil {
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
	file := filepath.Join(s.dir, "haproxy.cfg")
	if err := os.WriteFile(file, fmt.Appendf(nil, haproxyConfig, addr, sink), 0o600); err != nil {
		return err
	}
	p, err := startProcess(s.dir, "haproxy", t.haproxy, "-db", "-f", file)
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
	p, err := startProcess(s.dir, "plain", self, plainCommand, addr, sink)
	if err != nil {
		return err
	}
	s.targets = append(s.targets, target{name: plain, addr: addr, server: p})
	return p.waitReady(ctx, addr)
}

// gateConfig leaves all else as it is by default: header senders are judged
// too, and a line is logged a message.
const gateConfig = `hostname = "gate.example"
[listen]
addr = %q
[next_hop]
addr = %q
reuse = %t
[[list]]
name = "disposable"
path = "lists/disposable.txt"
type = "block"
`

// startGate builds the gate from the checkout and starts it with the real list.
func (s *servers) startGate(ctx context.Context, t tools, root, addr string, config []byte) error {
	file := filepath.Join(s.dir, "config.toml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return err
	}
	binary := filepath.Join(s.dir, "spamgate")
	build := exec.CommandContext(ctx, t.goTool, "build", "-buildvcs=false", "-o", binary, "./cmd/spamgate")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the gate: %w\n%s", err, out)
	}
	p, err := startProcess(s.dir, "gate", binary, "serve", "--config", file)
	if err != nil {
		return err
	}
	s.targets = append(s.targets, target{name: gate, addr: addr, server: p, gate: true})
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
