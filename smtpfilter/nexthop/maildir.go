package nexthop

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"spamgate/internal/maildir"
	"spamgate/smtpfilter/wire"
)

// Maildir is a Target that delivers into a Maildir. It accepts every recipient, and
// stores a message in one file for all.
type Maildir struct {
	dir    *maildir.Dir
	log    *slog.Logger
	meter  Meter
	closed atomic.Bool
	health health
}

var _ Target = (*Maildir)(nil)

// NewMaildir opens the Maildir, and creates it if needed. The logger receives the
// reason if a message cannot be stored, which the client does not receive; nil
// discards it.
func NewMaildir(dir string, log *slog.Logger) (*Maildir, error) {
	d, err := maildir.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("next hop: %w", err)
	}
	return &Maildir{dir: d, log: logger(log), meter: noMeter{}}, nil
}

// String returns "maildir:" with the directory.
func (m *Maildir) String() string { return SchemeMaildir + ":" + m.dir.Path() }

// Extensions returns what a Maildir supports.
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

// delivery is a Transaction into a Maildir, and its Message. No call waits for long,
// so Abort waits for one that is under way.
type delivery struct {
	target *Maildir
	env    Envelope

	mu       sync.Mutex
	accepted int
	file     *maildir.File
	raw      bool // the message has no dot-stuffing
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
		return wire.Reply{}, d.fail(errors.New("RCPT after DATA"))
	}
	d.accepted++
	return wire.NewReply(250, "2.1.5 Ok"), nil
}

// Data creates the file, and writes the Return-Path field of final delivery (RFC
// 5321, section 4.4).
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

// Write writes a piece of the message without its dot-stuffing. An error of the file
// system is a *ReplyError.
func (d *delivery) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.check(context.Background()); err != nil {
		return 0, err
	}
	if err := d.write(p); err != nil {
		reply := d.refuse(err)
		d.err = &ReplyError{Reply: reply, Err: err}
		return 0, d.err
	}
	return len(p), nil
}

// Flush does nothing: Write does not buffer.
func (d *delivery) Flush() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.check(context.Background())
}

// write writes p, unless it is raw without the dots that begin a line (RFC 5321,
// section 4.5.2). A line begins after CRLF, wherever the pieces are cut.
func (d *delivery) write(p []byte) error {
	for len(p) > 0 {
		if !d.raw && !d.midLine && p[0] == '.' {
			p = p[1:]
			d.midLine, d.lastCR = true, false
			continue
		}
		line := p
		if end := bytes.IndexByte(p, '\n') + 1; end > 0 && !d.raw {
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

// endsLine reports whether piece, which may follow a CR, ends in CRLF.
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
	name, began := d.file.Name(), time.Now()
	if err := d.file.Commit(); err != nil {
		return d.refuse(err), nil
	}
	d.target.meter.Took(d.target.String(), StepReply, time.Since(began))
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

// check returns the error of a call that cannot continue.
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
	d.err = cmp.Or(d.err, fmt.Errorf("next hop %s: %w", d.target, err))
	return d.err
}

// refuse ends the delivery after an error of the file system, and logs it. The reply
// has no path.
func (d *delivery) refuse(err error) wire.Reply {
	d.target.health.v.Store(healthDown)
	d.target.meter.Failed(d.target.String(), StepStore)
	d.target.log.Error("message not stored", "next_hop", d.target.String(), "id", d.env.ID, "error", err)
	d.fail(err)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return wire.NewReply(452, "4.3.1 Not enough space to store the message")
	}
	return wire.NewReply(451, "4.3.0 The message could not be stored")
}
