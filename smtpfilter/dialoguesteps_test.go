package smtpfilter_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"spamgate/smtpfilter/nexthop/nexthoptest"
)

// step carries out one step of a conversation.
func (d *dialogue) step(text string) error {
	verb, arg, _ := strings.Cut(text, " ")
	switch verb {
	case "C":
		_, err := io.WriteString(d.conn, arg+"\r\n")
		return err
	case "R":
		_, err := io.WriteString(d.conn, expand(arg))
		return err
	case "S":
		return d.reply(arg)
	case "E":
		return d.offered(strings.Split(arg, ","))
	case "TLS":
		c := tls.Client(d.conn, &tls.Config{RootCAs: nexthoptest.Roots(), ServerName: nexthoptest.ServerName})
		d.use(c)
		return c.Handshake()
	case "A":
		command, reply, ok := strings.Cut(arg, " => ")
		if !ok {
			return errors.New("no =>")
		}
		d.sinks[0].SetReply(command, strings.ReplaceAll(reply, "|", "\n"))
		return nil
	case "P":
		d.probe()
		return nil
	case "K":
		d.sinks[0].CloseConns()
		d.sinks[0].WaitConns(0)
		return nil
	case "W":
		return d.got(arg)
	case "H":
		return d.waitFor(func() error { return d.got(arg) })
	case "L":
		return d.logged(arg)
	case "X":
		if line, err := d.in.ReadString('\n'); err == nil || line != "" || errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("got %q, %v; want the end of the connection", line, err)
		}
		return nil
	case "Q":
		return d.conn.Close()
	case "M":
		return d.nextMessage(expand(arg))
	case "O":
		if n := strings.Count(string(d.message.Body), arg+"\r\n"); n != 1 {
			return fmt.Errorf("%d times in %q", n, d.message.Body)
		}
		return nil
	case "T":
		for line := range strings.Lines(string(d.message.Body)) {
			if like(arg, strings.TrimRight(line, "\r\n")) {
				return nil
			}
		}
		return fmt.Errorf("not in %q", d.message.Body)
	}
	return errors.New("unknown step")
}

func (d *dialogue) reply(want string) error {
	line, err := d.in.ReadString('\n')
	if err != nil {
		return fmt.Errorf("got %q, %w", line, err)
	}
	if got, ok := strings.CutSuffix(line, "\r\n"); !ok || !like(want, got) {
		return fmt.Errorf("got %q", line)
	}
	return nil
}

// offered reads the reply to EHLO.
func (d *dialogue) offered(keywords []string) error {
	lines := append([]string{"gate.example"}, keywords...)
	for i, line := range lines {
		separator := "-"
		if i == len(lines)-1 {
			separator = " "
		}
		if err := d.reply("250" + separator + line); err != nil {
			return err
		}
	}
	return nil
}

// got looks for a command among those of the next hop.
func (d *dialogue) got(want string) error {
	var lines []string
	for _, sink := range d.sinks {
		for _, c := range sink.Commands() {
			if like(want, c.Line) {
				return nil
			}
			lines = append(lines, c.Line)
		}
	}
	return fmt.Errorf("not among %q", lines)
}

// waitFor waits for what happens without the client's doing.
func (d *dialogue) waitFor(check func() error) error {
	for end := time.Now().Add(waitLimit); ; time.Sleep(time.Millisecond) {
		if err := check(); err == nil || time.Now().After(end) {
			return err
		}
	}
}

// logged looks for a line in the log, or for none.
func (d *dialogue) logged(want string) error {
	want, none := strings.CutPrefix(want, "!")
	for line := range strings.Lines(d.log.String()) {
		if like("*"+want+"*", strings.TrimSpace(line)) {
			if none {
				return errors.New(line)
			}
			return nil
		}
	}
	if none {
		return nil
	}
	return fmt.Errorf("not in\n%s", d.log.String())
}

// nextMessage checks the next delivered message: trace fields, then the text.
func (d *dialogue) nextMessage(text string) error {
	if len(d.sinks) == 1 { // it may have the end of it before it has noticed
		d.sinks[0].WaitMessages(d.taken + 1)
	}
	messages := d.messages()
	if len(messages) <= d.taken {
		return fmt.Errorf("%d messages were delivered", len(messages))
	}
	d.message = messages[d.taken]
	d.taken++
	trace, ok := strings.CutSuffix(string(d.message.Body), text)
	if !ok {
		return fmt.Errorf("got %q", d.message.Body)
	}
	return checkTrace(trace)
}

// compareCommands compares what the next hop got; NOOP, RSET and QUIT at the
// end of a connection are its client's own business.
func (d *dialogue) compareCommands(want []string) {
	if len(want) == 1 && want[0] == "-" {
		want = nil
	}
	var got []string
	for _, sink := range d.sinks {
		commands := sink.Commands()
		for i, c := range commands {
			if isProbe(commands, i) {
				continue
			}
			switch c.Verb() {
			case "QUIT", "RSET", "XFORWARD", "EHLO", "HELO", "LHLO":
			default:
				got = append(got, c.Line)
			}
		}
	}
	if !slices.Equal(got, want) {
		d.t.Errorf("%s: the next hop got\n\t%s\nwant\n\t%s", d.file, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// isProbe reports whether a command is the MAIL of a probe, which no RCPT follows.
func isProbe(commands []nexthoptest.Command, i int) bool {
	if commands[i].Line != "MAIL FROM:<>" {
		return false
	}
	for _, c := range commands[i+1:] {
		if c.Conn == commands[i].Conn {
			return c.Verb() == "RSET"
		}
	}
	return true
}

// checkTrace checks that trace is X-Spamgate fields and one Received field.
func checkTrace(trace string) error {
	rest := trace
	for strings.HasPrefix(rest, "X-Spamgate: listed; ") {
		_, rest, _ = strings.Cut(rest, "\r\n")
	}
	lines := strings.Split(rest, "\r\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[0], "Received: from ") || lines[3] != "" ||
		!like("\tby gate.example with * id *;", lines[1]) || !strings.HasPrefix(lines[2], "\t") {
		return fmt.Errorf("trace fields %q", trace)
	}
	if _, err := time.Parse("Mon, 02 Jan 2006 15:04:05 -0700", lines[2][1:]); err != nil {
		return err
	}
	return nil
}
