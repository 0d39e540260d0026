package nexthop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"spamgate/internal/maildir"
	"spamgate/smtpfilter/wire"
)

// Maildir is a Target that delivers into a Maildir. Every recipient is accepted,
// and a message is one file, whoever it is for.
type Maildir struct {
	dir    *maildir.Dir
	log    *slog.Logger
	closed atomic.Bool
	health health
}

var _ Target = (*Maildir)(nil)

// NewMaildir opens the Maildir, and makes it where there is none. The logger
// hears why a message could not be stored, which its sender is only told in
// general; nil discards it.
func NewMaildir(dir string, log *slog.Logger) (*Maildir, error) {
	d, err := maildir.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("next hop: %w", err)
	}
	return &Maildir{dir: d, log: logger(log)}, nil
}

// String is "maildir:" with the directory.
func (m *Maildir) String() string { return SchemeMaildir + ":" + m.dir.Path() }

// Extensions are what a Maildir can do.
func (m *Maildir) Extensions() wire.Extensions {
	return wire.Extensions{"8BITMIME": nil, "ENHANCEDSTATUSCODES": nil, "SIZE": nil, "SMTPUTF8": nil}
}

// Begin starts a transaction.
func (m *Maildir) Begin(env Envelope) Transaction {
	d := &delivery{target: m, env: env}
	if m.closed.Load() {
		d.err = ErrClosed
	}
	return d
}

// Close makes later transactions fail.
func (m *Maildir) Close() error {
	m.closed.Store(true)
	return nil
}

// delivery is a Transaction into a Maildir, and its Message. Nothing in it waits
// for long, so an Abort waits for a call that is under way.
type delivery struct {
	target *Maildir
	env    Envelope

	mu       sync.Mutex
	accepted int
	file     *maildir.File
	raw      bool // the message comes without dot-stuffing
	midLine  bool // the next byte does not begin a line
	lastCR   bool // the last byte was a CR
	err      error
}

// Rcpt accepts the recipient.
func (d *delivery) Rcpt(ctx context.Context, to string, params []string) (wire.Reply, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.check(ctx); err != nil {
		return wire.Reply{}, err
	}
	if d.file != nil {
		return wire.Reply{}, d.fail(errors.New("recipient asked for after DATA"))
	}
	d.accepted++
	return wire.NewReply(250, "2.1.5 Ok"), nil
}

// Data creates the file, and writes the Return-Path field that final delivery
// puts in front (RFC 5321, section 4.4).
func (d *delivery) Data(ctx context.Context, f Format) (Message, wire.Reply, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.check(ctx); err != nil {
		return nil, wire.Reply{}, err
	}
	if d.file != nil || d.accepted == 0 {
		return nil, wire.Reply{}, d.fail(errors.New("no recipient was accepted, or a second DATA"))
	}
	if f == Binary {
		return nil, wire.Reply{}, d.fail(fmt.Errorf("binary message: %w", ErrNotOffered))
	}
	d.raw = f == Raw
	if strings.ContainsAny(d.env.From, "\r\n\x00") {
		return nil, wire.Reply{}, d.fail(fmt.Errorf("control bytes in reverse-path %q", d.env.From))
	}
	file, err := d.target.dir.Create()
	if err == nil {
		d.file = file
		_, err = fmt.Fprintf(file, "Return-Path: <%s>\r\n", d.env.From)
	}
	if err != nil {
		return nil, d.refuse(err), nil
	}
	return d, wire.NewReply(354, "End data with <CR><LF>.<CR><LF>"), nil
}

// Write takes a piece of the message and removes the dot-stuffing where there is
// some. An error of the file system is a *ReplyError.
func (d *delivery) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.check(context.Background()); err != nil {
		return 0, err
	}
	var err error
	if d.raw {
		err = d.copy(p)
	} else {
		err = d.unstuff(p)
	}
	if err != nil {
		reply := d.refuse(err)
		d.err = &ReplyError{Reply: reply, Err: err}
		return 0, d.err
	}
	return len(p), nil
}

// Flush has nothing to do: what is written is on its way to the file.
func (d *delivery) Flush() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.check(context.Background())
}

// unstuff writes p without the dots that begin a line (RFC 5321, section
// 4.5.2). A line begins after CRLF, wherever the pieces are cut.
func (d *delivery) unstuff(p []byte) error {
	for len(p) > 0 {
		if !d.midLine && p[0] == '.' {
			p = p[1:]
			d.midLine, d.lastCR = true, false
			continue
		}
		end := bytes.IndexByte(p, '\n') + 1
		line := p
		if end > 0 {
			line = p[:end]
		}
		if _, err := d.file.Write(line); err != nil {
			return err
		}
		d.midLine = !endsLine(line, d.lastCR)
		d.lastCR = line[len(line)-1] == '\r'
		p = p[len(line):]
	}
	return nil
}

// copy writes p as it is.
func (d *delivery) copy(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	d.midLine = !endsLine(p, d.lastCR)
	d.lastCR = p[len(p)-1] == '\r'
	_, err := d.file.Write(p)
	return err
}

// endsLine reports whether CRLF stands where piece ends. The byte before piece
// was a CR where afterCR is set.
func endsLine(piece []byte, afterCR bool) bool {
	if len(piece) == 1 {
		return afterCR && piece[0] == '\n'
	}
	return bytes.HasSuffix(piece, []byte("\r\n"))
}

// Commit completes the last line and delivers the file.
func (d *delivery) Commit(ctx context.Context) (wire.Reply, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.check(ctx); err != nil {
		return wire.Reply{}, err
	}
	if d.midLine {
		if _, err := d.file.Write([]byte("\r\n")); err != nil {
			return d.refuse(err), nil
		}
	}
	name := d.file.Name()
	if err := d.file.Commit(); err != nil {
		return d.refuse(err), nil
	}
	d.target.health.markUp()
	d.err = errors.New("maildir: message is committed")
	return wire.NewReply(250, "2.0.0 Delivered as "+name), nil
}

// Abort removes the file.
func (d *delivery) Abort() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail(ErrAborted)
}

// check tells whether a call can do anything.
func (d *delivery) check(ctx context.Context) error {
	if d.err != nil {
		return d.err
	}
	if ctx.Err() != nil {
		return d.fail(context.Cause(ctx))
	}
	return nil
}

// fail ends the delivery with an error, and removes the file.
func (d *delivery) fail(err error) error {
	if d.file != nil {
		if err := d.file.Abort(); err != nil {
			d.target.log.Error("unfinished message not removed", "next_hop", d.target.String(), "id", d.env.ID, "error", err)
		}
	}
	if d.err == nil {
		d.err = fmt.Errorf("next hop %s: %w", d.target, err)
	}
	return d.err
}

// refuse ends the delivery after an error of the file system, which it logs. The
// reply names no path.
func (d *delivery) refuse(err error) wire.Reply {
	d.target.health.v.Store(healthDown)
	d.target.log.Error("message not stored", "next_hop", d.target.String(), "id", d.env.ID, "error", err)
	d.fail(err)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return wire.NewReply(452, "4.3.1 Not enough space to store the message")
	}
	return wire.NewReply(451, "4.3.0 The message could not be stored")
}
