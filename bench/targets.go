package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"spamgate/internal/disposable"
)

// target is a way from smtp-source to the sink.
type target struct {
	name    string
	addr    string
	server  *process // nil if there is no server between the two
	gate    bool
	history bool   // a gate with a row for each message
	halt    func() // stops the server; nil means SIGTERM is enough
}

const (
	direct  = "direct"
	haproxy = "HAProxy"
	postfix = "Postfix"
	plain   = "go-smtp"
)

// A gate for each way to tell the sink who its client is. HAProxy in TCP mode does
// not tell it, so none is the fair comparison; auto is the default.
const (
	gateNone     = "spamgate none"
	gateXforward = "spamgate xforward"
	gateAuto     = "spamgate auto"
)

// gateBefore is an older gate, configured as gateNone. It is there if --before names its program.
const gateBefore = "spamgate before"

// gate is a gate's name, and what its configuration has in [next_hop].
type gate struct{ name, keys string }

var gates = []gate{
	{gateNone, `identity = "none"`}, {gateXforward, `identity = "xforward"`}, {gateAuto, `identity = "auto"`},
}

// names are the targets in the order of the report.
var names = []string{direct, haproxy, postfix, plain, gateData, gateNone, gateXforward, gateAuto, gateBefore}

// gateData is gateNone without chunks to a next hop that offers CHUNKING.
const gateData = "spamgate DATA"

// hopNames are the targets of the row with a real Postfix as next hop. Behind has the names under which they run.
var hopNames = []string{direct, haproxy, gateData, gateNone, gateXforward, gateAuto}

func behind(name string) string { return name + toPostfix }

const toPostfix = ", to Postfix"

// servers is all servers that run during the benchmark.
type servers struct {
	dir     string // each process has a directory of its own in it
	sink    *process
	targets []target
	idle    map[string]idleness
	settled map[string]bool // gates that have measured their filter
	hopLog  string          // of the Postfix behind the gates
	cleanup []func()
}

// startServers starts the sink and all targets. The caller calls stop, also after an
// error.
func startServers(ctx context.Context, t tools, root, dir string, o options) (s *servers, err error) {
	s = &servers{dir: dir, idle: map[string]idleness{}, settled: map[string]bool{}}
	addrs, err := freeAddrs(len(names) + len(hopNames) + len(featureGates) + 1)
	if err != nil {
		return s, err
	}
	sinkAddr := addrs[0]
	if err := s.startSink(ctx, t, sinkAddr); err != nil {
		return s, err
	}
	s.targets = []target{{name: direct, addr: sinkAddr}}
	if err := s.startHAProxy(ctx, t, haproxy, addrs[1], sinkAddr); err != nil {
		return s, err
	}
	if err := s.startPostfix(ctx, t, addrs[2], sinkAddr); err != nil {
		return s, err
	}
	self, err := os.Executable() // which is also the proxy of go-smtp alone
	if err != nil {
		return s, err
	}
	if err := s.start(ctx, target{name: plain, addr: addrs[3]}, nil, self, plainCommand, addrs[3], sinkAddr); err != nil {
		return s, err
	}
	binary, err := build(ctx, t, root, dir, "spamgate")
	if err != nil {
		return s, err
	}
	addrs = addrs[4:]
	hop := sinkAddr
	start := func(t target, keys, more string) error {
		t.addr, addrs = addrs[0], addrs[1:]
		binary := binary
		if t.name == gateBefore {
			binary = o.before
		}
		return s.startGate(ctx, t, binary, fmt.Sprintf(gateConfig, t.addr, "smtp://"+hop, o.reuse, keys)+more)
	}
	if o.before != "" {
		if err := start(target{name: gateBefore}, gates[0].keys, ""); err != nil {
			return s, err
		}
	}
	for _, g := range gates {
		if err := start(target{name: g.name}, g.keys, ""); err != nil {
			return s, err
		}
	}
	hop, addrs = addrs[0], addrs[1:]
	if err := s.startHop(ctx, t, hop); err != nil {
		return s, err
	}
	proxyAddr := addrs[0]
	addrs = addrs[1:]
	if err := s.startHAProxy(ctx, t, behind(haproxy), proxyAddr, hop); err != nil {
		return s, err
	}
	for _, g := range append(gates, gate{gateData, "identity = \"none\"\nchunking = false"}) {
		if err := start(target{name: behind(g.name)}, g.keys, ""); err != nil {
			return s, err
		}
	}
	hop = sinkAddr
	fleetAddr := addrs[len(addrs)-1]
	if err := s.startFleetd(ctx, t, root, dir, fleetAddr); err != nil {
		return s, err
	}
	return s, s.startFeatureGates(func(t target, more string) error { return start(t, gates[0].keys, more) }, fleetAddr)
}

// makeDir makes the directory of a process. No other process writes to it: that
// would wake a gate, which watches its lists' directory and the one above.
func (s *servers) makeDir(name string) (string, error) {
	dir := filepath.Join(s.dir, strings.ReplaceAll(name, " ", "-"))
	return dir, os.Mkdir(dir, 0o700)
}

// start makes the directory of a server and the files in it, starts the server
// there as a target, and waits until it answers.
func (s *servers) start(ctx context.Context, t target, files map[string]string, path string, args ...string) error {
	dir, err := s.makeDir(t.name)
	if err != nil {
		return err
	}
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return err
		}
	}
	if t.server, err = startProcess(dir, t.name, path, args...); err != nil {
		return err
	}
	s.targets = append(s.targets, t)
	return t.server.waitReady(ctx, t.addr)
}

func (s *servers) stop() {
	for _, t := range s.targets {
		if t.halt != nil {
			t.halt()
		}
		if t.server != nil {
			t.server.stop()
		}
	}
	if s.sink != nil {
		s.sink.stop()
	}
	for _, f := range slices.Backward(s.cleanup) {
		f()
	}
}

// startSink starts smtp-sink, which counts messages (-c) and drops them.
func (s *servers) startSink(ctx context.Context, t tools, addr string) (err error) {
	args := []string{"-c"}
	if os.Geteuid() == 0 {
		args = append(args, "-u", "nobody") // as root it insists on a user
	}
	dir, err := s.makeDir("smtp-sink")
	if err != nil {
		return err
	}
	if s.sink, err = startProcess(dir, "smtp-sink", t["smtp-sink"], append(args, addr, "1000")...); err != nil {
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

// startHAProxy starts HAProxy in TCP mode, with its default number of threads and
// without a log.
func (s *servers) startHAProxy(ctx context.Context, t tools, name, addr, sink string) error {
	files := map[string]string{"haproxy.cfg": fmt.Sprintf(haproxyConfig, addr, sink)}
	return s.start(ctx, target{name: name, addr: addr}, files, t["haproxy"], "-db", "-f", "haproxy.cfg")
}

// gateConfig keeps the other defaults: the gate checks header senders too, and
// logs a line for each message.
const gateConfig = `hostname = "gate.example"
[listen]
addr = %q
[next_hop]
addr = %q
reuse = %t
%s
[state]
dir = "../state"
[[list]]
name = "disposable"
path = "lists/disposable.txt"
type = "block"
`

// build builds a program of the checkout.
func build(ctx context.Context, t tools, root, dir, name string) (binary string, err error) {
	binary = filepath.Join(dir, name)
	build := exec.CommandContext(ctx, t["go"], "build", "-buildvcs=false", "-o", binary, "./cmd/"+name)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", name, err, out)
	}
	return binary, nil
}

// startGate starts a gate with the real list. Its configuration is in a directory
// of its own, as in /etc, with the list below it: log and state are outside of
// what the gate watches.
func (s *servers) startGate(ctx context.Context, t target, binary, config string) error {
	files := map[string]string{"etc/config.toml": config, "etc/lists/disposable.txt": string(disposable.Text())}
	t.gate = true
	return s.start(ctx, t, files, binary, "serve", "--config", "etc/config.toml")
}

// received returns how many messages the sink behind a target has received so far.
func (s *servers) received(to target) (int, error) {
	if strings.HasSuffix(to.name, toPostfix) {
		text, err := os.ReadFile(s.hopLog)
		return bytes.Count(text, []byte("status=sent")), err
	}
	text, err := os.ReadFile(s.sink.logPath)
	if err != nil {
		return 0, err
	}
	return lastCount(text), nil
}

// lastCount parses the counters of smtp-sink -c, which overwrites them each time:
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

// accepted returns how many messages the gate has logged as accepted so far.
func (t target) accepted() (int, error) {
	text, err := os.ReadFile(t.server.logPath)
	return bytes.Count(text, []byte(" msg=accepted ")), err
}
