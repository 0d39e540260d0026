package smtpfilter_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"spamgate/internal/smtptest"
)

// step plays one step.
func (d *dialogue) step(l smtptest.Line) error {
	if known, err := d.listStep(l); known {
		return err
	}
	switch l.Verb {
	case "hop":
		command, reply, ok := strings.Cut(l.Text, " => ")
		if !ok {
			return errors.New("no =>")
		}
		d.sinks[0].SetReply(command, strings.ReplaceAll(reply, "|", "\n"))
		return nil
	case "probe":
		d.probe()
		return nil
	case "disconnect":
		d.sinks[0].CloseConns()
		d.sinks[0].WaitConns(0)
		return nil
	case "got":
		return d.got(l.Text)
	case "wait":
		return d.waitFor(func() error { return d.got(l.Text) })
	case "relayed":
		d.relayed = append(d.relayed, l.Text)
		return nil
	case "log":
		return d.logged(l.Text)
	case "message":
		return d.nextMessage(smtptest.Expand(l.Text))
	case "once":
		if n := strings.Count(string(d.message.Body), l.Text+"\r\n"); n != 1 {
			return fmt.Errorf("%d times in %q", n, d.message.Body)
		}
		return nil
	case "trace":
		for line := range strings.Lines(string(d.message.Body)) {
			if smtptest.Match(l.Text, strings.TrimRight(line, "\r\n")) {
				return nil
			}
		}
		return fmt.Errorf("not in %q", d.message.Body)
	}
	return d.client.Play(l)
}

// got looks for a command among those that the next hop received.
func (d *dialogue) got(want string) error {
	var lines []string
	for _, sink := range d.sinks {
		for _, c := range sink.Commands() {
			if smtptest.Match(want, c.Line) {
				return nil
			}
			lines = append(lines, c.Line)
		}
	}
	return fmt.Errorf("not among %q", lines)
}

// waitFor waits until check succeeds, for events that the client does not cause.
func (d *dialogue) waitFor(check func() error) error {
	for end := time.Now().Add(waitLimit); ; time.Sleep(time.Millisecond) {
		if err := check(); err == nil || time.Now().After(end) {
			return err
		}
	}
}

// logged looks for a line in the log, or checks that there is none.
func (d *dialogue) logged(want string) error {
	want, none := strings.CutPrefix(want, "!")
	for line := range strings.Lines(d.log.String()) {
		if smtptest.Match("*"+want+"*", strings.TrimSpace(line)) {
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
		d.sinks[0].WaitMessages(d.checked + 1)
	}
	messages := d.messages()
	if len(messages) <= d.checked {
		return fmt.Errorf("%d messages were delivered", len(messages))
	}
	if text == "[signed]" {
		text = d.signed
	}
	d.message = messages[d.checked]
	d.checked++
	trace, ok := strings.CutSuffix(string(d.message.Body), text)
	if !ok {
		return fmt.Errorf("got %q", d.message.Body)
	}
	return checkTrace(trace)
}

// compareCommands compares the commands that the next hop received. It ignores NOOP, RSET
// and QUIT at the end of a connection.
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

// isProbe reports whether a command is the MAIL of a probe, which has no RCPT after it.
func isProbe(commands []smtptest.Command, i int) bool {
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

// checkTrace checks that trace consists of X-Spamgate fields and one Received field.
func checkTrace(trace string) error {
	rest := trace
	for strings.HasPrefix(rest, "X-Spamgate: listed; ") {
		_, rest, _ = strings.Cut(rest, "\r\n")
	}
	lines := strings.Split(rest, "\r\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[0], "Received: from ") || lines[3] != "" ||
		!smtptest.Match("\tby gate.example with * id *;", lines[1]) || !strings.HasPrefix(lines[2], "\t") {
		return fmt.Errorf("trace fields %q", trace)
	}
	if _, err := time.Parse("Mon, 02 Jan 2006 15:04:05 -0700", lines[2][1:]); err != nil {
		return err
	}
	return nil
}
