package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// process is a server that runs in the background, with its output in a file.
type process struct {
	name    string
	cmd     *exec.Cmd
	logPath string
	begun   time.Time
	ended   chan struct{}
}

// startProcess starts a server in dir, which also gets its log.
func startProcess(dir, name, path string, args ...string) (*process, error) {
	p := &process{name: name, cmd: exec.Command(path, args...), logPath: filepath.Join(dir, "log"), begun: time.Now(), ended: make(chan struct{})}
	log, err := os.Create(p.logPath)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, log, log
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		p.cmd.Wait() // the log says how it ended
		close(p.ended)
	}()
	return p, nil
}

// stop ends the server, by force if it takes too long.
func (p *process) stop() {
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		p.cmd.Process.Kill()
		<-p.ended
	}
}

// log returns the end of the server's output.
func (p *process) log() string {
	text, _ := os.ReadFile(p.logPath)
	return string(text[max(0, len(text)-2000):])
}

// startLimit is how long a server may take until it answers: the gate reads a
// long list before it listens, and the machine may be busy.
const startLimit = time.Minute

// waitReady waits until p answers SMTP at addr.
func (p *process) waitReady(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return err
	}
	for {
		err := newClient().session(to, func() error { return nil })
		if err == nil {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-p.ended:
			return fmt.Errorf("%s has ended: %s", p.name, p.log())
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer (%w): %s", p.name, err, p.log())
		}
	}
}

// Ports that freeAddrs tries. They are below those that the system assigns.
const firstPort, lastPort = 10_001, 30_000

// freeAddrs returns addresses without a listener. Nobody else will listen on them
// either: the loopback address depends on this process's id.
func freeAddrs(n int) ([]string, error) {
	pid := os.Getpid()
	host := fmt.Sprintf("127.%d.%d.%d", 64+pid>>16&63, pid>>8&255, pid&255)
	var addrs []string
	for port := firstPort; len(addrs) < n; port++ {
		addr := net.JoinHostPort(host, strconv.Itoa(port))
		l, err := net.Listen("tcp", addr)
		if err == nil {
			l.Close()
			addrs = append(addrs, addr)
		} else if port == lastPort {
			return nil, err
		}
	}
	return addrs, nil
}
