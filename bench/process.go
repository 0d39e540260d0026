package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a server that runs in the background. What it prints goes to a
// file.
type process struct {
	name    string
	cmd     *exec.Cmd
	logPath string
	halt    func() // how it is stopped; nil is by SIGTERM
	ended   chan struct{}
}

// startProcess starts a server in dir, where its log will be, too.
func startProcess(dir, name, path string, args ...string) (*process, error) {
	p := &process{name: name, cmd: exec.Command(path, args...), logPath: filepath.Join(dir, "log"), ended: make(chan struct{})}
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
		p.cmd.Wait() // how a server ended is in its log
		close(p.ended)
	}()
	return p, nil
}

// stop ends the server, by force if it takes too long.
func (p *process) stop() {
	if p.halt != nil {
		p.halt()
	} else {
		p.cmd.Process.Signal(syscall.SIGTERM)
	}
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		p.cmd.Process.Kill()
		<-p.ended
	}
}

// log is the end of what the server has printed.
func (p *process) log() string {
	text, _ := os.ReadFile(p.logPath)
	return string(text[max(0, len(text)-2000):])
}

// startLimit is how long a server may take until it answers: the gate reads a
// long list before it listens, and other work may go on beside.
const startLimit = time.Minute

// waitReady waits until an SMTP server answers at addr, through p.
func (p *process) waitReady(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		err := greeted(ctx, addr)
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

// greeted has one SMTP session without mail.
func greeted(ctx context.Context, addr string) error {
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	replies := bufio.NewReader(c)
	for _, want := range []string{"220 ", "221 "} {
		line, err := replies.ReadString('\n')
		if err != nil {
			return err
		}
		if !strings.HasPrefix(line, want) {
			return fmt.Errorf("answer %q instead of %s", line, want)
		}
		fmt.Fprint(c, "QUIT\r\n")
	}
	return nil
}

// Ports that freeAddrs looks at. They are below those that the system gives to
// whoever asks for any.
const firstPort, lastPort = 10_001, 30_000

// freeAddrs finds addresses that nobody listens on, or will before they are used:
// the address of loopback is this process's own.
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
