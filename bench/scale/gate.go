package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// config returns the gate's configuration, with a long and a short list, and one of
// three lines.
func config(kind string) string {
	return fmt.Sprintf(`[listen]
addr = "127.0.0.1:0"
[next_hop]
addr = "maildir:mail"
[filter]
kind = %q
[admin]
socket = ""
[log]
format = "json"
[[list]]
name = "long"
path = "long.txt"
max_bytes = 1099511627776
[[list]]
name = "short"
path = "short.txt"
[[list]]
name = "own"
path = "own.txt"
`, kind)
}

// gate is a running spamgate and its log.
type gate struct {
	cmd   *exec.Cmd
	lines chan string
	tail  []string // the last lines, for errors
}

// startGate starts the program and waits until it listens.
func startGate(program, dir string) (g *gate, took time.Duration, err error) {
	g = &gate{cmd: exec.Command(program, "serve"), lines: make(chan string, 1000)}
	g.cmd.Dir = dir
	out, err := g.cmd.StderrPipe()
	if err != nil {
		return nil, 0, err
	}
	started := time.Now()
	if err := g.cmd.Start(); err != nil {
		return nil, 0, fmt.Errorf("starting spamgate: %w", err)
	}
	go g.read(out)
	if err := g.wait("listening"); err != nil {
		g.stop() // returns the same error
		return nil, 0, err
	}
	return g, time.Since(started), nil
}

func (g *gate) read(out io.Reader) {
	defer close(g.lines)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		g.lines <- lines.Text()
	}
}

// waitLimit is the limit of each wait: a hundred million entries take minutes.
const waitLimit = 30 * time.Minute

// wait reads the log until a line contains text.
func (g *gate) wait(text string) error {
	late := time.After(waitLimit)
	for {
		select {
		case line, open := <-g.lines:
			if !open {
				return fmt.Errorf("spamgate ended before it logged %q; its last lines:\n%s", text, strings.Join(g.tail, "\n"))
			}
			g.tail = append(g.tail, line)
			g.tail = g.tail[max(0, len(g.tail)-10):]
			if strings.Contains(line, text) {
				return nil
			}
		case <-late:
			return fmt.Errorf("spamgate did not log %q within %v", text, waitLimit)
		}
	}
}

func (g *gate) stop() error {
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	for range g.lines { // until it has ended
	}
	if err := g.cmd.Wait(); err != nil {
		return fmt.Errorf("spamgate: %w; its last lines:\n%s", err, strings.Join(g.tail, "\n"))
	}
	return nil
}

// memory returns from proc(5) the largest resident memory so far, and the resident
// memory that is not of a file, in bytes.
func (g *gate) memory() (peak, anonymous uint64, err error) {
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(g.cmd.Process.Pid), "status"))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(status)) {
		for name, value := range map[string]*uint64{"VmHWM:": &peak, "RssAnon:": &anonymous} {
			if rest, ok := strings.CutPrefix(line, name); ok {
				if *value, err = strconv.ParseUint(strings.Fields(rest)[0], 10, 64); err != nil {
					return 0, 0, err
				}
				*value <<= 10 // kB
			}
		}
	}
	return peak, anonymous, nil
}

// timeChange returns the time from the end of a write to the log line that says
// that it is live.
func (g *gate) timeChange(change func() error) (time.Duration, error) {
	if err := change(); err != nil {
		return 0, err
	}
	written := time.Now()
	err := g.wait(`"lists live"`)
	return time.Since(written), err
}
