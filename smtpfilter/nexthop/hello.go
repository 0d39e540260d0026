package nexthop

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	smtp "github.com/emersion/go-smtp"

	"spamgate/smtpfilter/wire"
)

// connect opens a connection, up to the reply to EHLO or HELO.
func (s *SMTP) connect(ctx context.Context) (*conn, error) {
	dialCtx, cancel := context.WithTimeout(ctx, s.config.Timeouts.Connect)
	defer cancel()
	nc, err := s.config.Dial(dialCtx, "tcp", s.config.Addr)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	c := newConn(nc, s.config.Timeouts)
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	err = c.hello(s.config.Hostname)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	return c, nil
}

// hello has the smtp.Client read the greeting and say EHLO, and HELO where the
// server does not know that. What the server offers is read from the lines that
// passed, because the client knows keywords in upper case only.
func (c *conn) hello(hostname string) error {
	c.SetReadDeadline(time.Now().Add(c.timeouts.Greeting))
	c.lines.timeout = c.timeouts.Mail
	err := c.client.Hello(hostname)
	step := c.lines.verb
	if step == "" {
		step = "greeting"
	}
	var refused *smtp.SMTPError
	if errors.As(err, &refused) {
		return &ReplyError{Reply: c.lines.reply, Err: fmt.Errorf("%s refused", step)}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	if step == "EHLO" {
		c.offers = parseExtensions(c.lines.reply)
	}
	return nil
}

// extensions are the keywords of a reply to EHLO, in upper case, with their
// parameters.
type extensions map[string][]string

// parseExtensions reads the lines of a reply to EHLO, the first apart, which is
// the server's name (RFC 5321, section 4.1.1.1). Case does not count.
func parseExtensions(reply wire.Reply) extensions {
	e := make(extensions)
	for _, line := range reply.Lines[1:] {
		if words := strings.Fields(line); len(words) > 0 {
			e[strings.ToUpper(words[0])] = words[1:]
		}
	}
	return e
}

func (e extensions) has(keyword string) bool {
	_, ok := e[keyword]
	return ok
}

// lineConn is the conn as the smtp.Client sees it. A Read returns one checked
// reply line at most, so that the client never holds bytes beyond the reply that
// it reads, and its deadlines are ours.
type lineConn struct {
	*conn
	timeout time.Duration // for the reply to what is written

	verb  string     // of the last command; "" before the first
	reply wire.Reply // since the last command
	rest  []byte     // of the line that is being read
}

func (l *lineConn) Read(p []byte) (int, error) {
	if len(l.rest) == 0 {
		if err := l.nextLine(); err != nil {
			return 0, err
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// nextLine reads a reply line, and writes it anew: the client refuses a code
// without a text, which the RFC wants accepted (section 4.2).
func (l *lineConn) nextLine() error {
	line, err := l.readLine()
	if err != nil {
		return err
	}
	last, err := l.reply.AppendLine(line)
	if err != nil {
		return err
	}
	separator := byte('-')
	if last {
		separator = ' '
		if err := l.check(l.reply, 0); err != nil {
			return err
		}
	}
	l.rest = strconv.AppendInt(l.rest[:0], int64(l.reply.Code), 10)
	l.rest = append(l.rest, separator)
	l.rest = append(l.rest, l.reply.Lines[len(l.reply.Lines)-1]...)
	l.rest = append(l.rest, '\r', '\n')
	return nil
}

func (l *lineConn) Write(p []byte) (int, error) {
	l.verb, _, _ = strings.Cut(strings.TrimSpace(string(p)), " ")
	l.reply = wire.Reply{}
	l.SetReadDeadline(time.Now().Add(l.timeout))
	return l.conn.Write(p)
}

// SetDeadline does nothing: the client would overwrite our deadlines.
func (l *lineConn) SetDeadline(time.Time) error { return nil }
