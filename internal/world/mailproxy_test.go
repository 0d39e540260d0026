package world

import (
	"bytes"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"spamgate/smtpfilter"
	"spamgate/smtpfilter/wire"
)

// handling is how a client sends a message, and what happens to it meanwhile.
type handling struct {
	pipelined bool
	chunk     int // the size of the chunks of BDAT; 0: DATA
	giveUp    giveUp
	size      *big.Int // of a message that the client announces before; nil: none
	trouble   trouble  // at the next hop
	edits     []edit
}

// edit is another configuration that the gate gets while a message comes: after MAIL and so many
// recipients, or in the content.
type edit struct {
	after   int
	another prepared
}

const inContent = 1000

// giveUp is how a client gives a message up, before it begins it again.
type giveUp struct {
	how   string // "": it does not
	after int    // recipients, or thousandths of the bytes
}

const (
	cutOff  = "is cut off after"
	reset   = "says RSET after"
	hello   = "says EHLO after"
	anew    = "says MAIL again after"
	unended = "says RSET between chunks, after"
)

// proxy is the gate's SMTP session.
type proxy struct {
	*mailGate
	listener *smtpfilter.Listener
	clients  memoryListener
	conn     *memoryConn
	largest  *big.Int // message, as the gate says
	faults   []string // of the replies
}

func (*proxy) String() string { return "proxy" }

func (p *proxy) apply(s smtpfilter.Settings) { must(p.listener.Apply(s)) }

func (p *proxy) open() {
	var greeting string
	p.conn, greeting = p.clients.dial()
	p.replies(greeting, 1)
	hello := p.say("EHLO client.example\r\n", 1)[0]
	i := slices.IndexFunc(hello.Lines, func(line string) bool { return strings.HasPrefix(line, "SIZE ") })
	p.largest, _ = new(big.Int).SetString(hello.Lines[i][len("SIZE "):], 10)
}

func (p *proxy) close() []string {
	p.replies(p.conn.hangUp(), 0)
	return p.seen()
}

// seen returns what was seen since the last call that must not be.
func (p *proxy) seen() []string {
	faults := append(p.faults, p.proofs.faults...)
	p.faults, p.proofs.faults = nil, nil
	return faults
}

// say sends commands, and returns that many replies.
func (p *proxy) say(text string, n int) []wire.Reply { return p.replies(p.conn.say(text), n) }

// replies parses what the gate says. If it is not that many replies, or not well-formed, it notes so.
func (p *proxy) replies(said string, n int) (all []wire.Reply) {
	var r wire.Reply
	for line := range strings.Lines(said) {
		last, err := r.AppendLine([]byte(line))
		if err == nil && !wellFormed(line) {
			err = fmt.Errorf("%q is not well-formed", line)
		}
		if err != nil {
			p.fault("%v", err)
			last = true
		}
		if last {
			all, r = append(all, r), wire.Reply{}
		}
	}
	if r.Code != 0 || n >= 0 && len(all) != n {
		p.fault("%d replies, want %d: %q", len(all), n, said)
	}
	for len(all) < n {
		all = append(all, wire.Reply{Code: 499, Lines: []string{"there is no reply"}})
	}
	return all
}

// wellFormed reports whether a line of a reply is as it must be: RFC 5321, sections 4.2 and 4.5.3.1.5,
// and RFC 2034, section 4.
func wellFormed(line string) bool {
	text, ok := strings.CutSuffix(line, "\r\n")
	if !ok || len(line) > 512 || len(text) < 6 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
		return false
	}
	code, status := text[:3], text[4:]
	return code == "220" || code == "250" && !strings.HasPrefix(status[1:], ".") || code == "354" ||
		len(status) > 6 && status[0] == code[0] && status[1] == '.' && strings.Count(status[:6], ".") == 2
}

// A dialogue is what a client says in one transaction, and what it hears.
type dialogue struct {
	*proxy
	h       *handling
	batch   string // commands that are not sent yet
	n       int    // their number
	replies []wire.Reply
}

func (d *dialogue) command(format string, args ...any) {
	d.batch, d.n = d.batch+fmt.Sprintf(format, args...), d.n+1
	if !d.h.pipelined {
		d.flush()
	}
}

func (d *dialogue) flush() {
	if d.n > 0 {
		d.replies = append(d.replies, d.say(d.batch, d.n)...)
	}
	d.batch, d.n = "", 0
}

// edit gives the gate the configurations that it gets after so many recipients.
func (d *dialogue) edit(after int) {
	for _, e := range d.h.edits {
		if e.after == after {
			d.flush()
			d.mailGate.apply(d.proxy, e.another)
		}
	}
}

// envelope sends the commands before the content, for so many recipients.
func (d *dialogue) envelope(m *message, rcpts int) {
	d.command("MAIL FROM:<%s> %s\r\n", m.from.written, mailParams)
	d.edit(0)
	for i, r := range m.rcpts[:rcpts] {
		d.command("RCPT TO:<%s> %s\r\n", r, rcptParams(r))
		d.edit(i + 1)
	}
}

// accepted reports whether a recipient was accepted.
func (d *dialogue) accepted(m *message) bool {
	return slices.ContainsFunc(d.replies[1:1+len(m.rcpts)], wire.Reply.Positive)
}

// content sends the content.
func (d *dialogue) content(text []byte) {
	if d.h.chunk > 0 {
		for i, chunk := range slices.Collect(slices.Chunk(text, d.h.chunk)) {
			if d.chunk(chunk, (i+1)*d.h.chunk >= len(text)); d.n == 0 && !d.replies[len(d.replies)-1].Positive() {
				break // RFC 3030, section 2
			}
			if i == 0 {
				d.edit(inContent)
			}
		}
		d.flush()
		return
	}
	d.command("DATA\r\n")
	d.flush()
	if i := len(d.replies) - 1; d.replies[i].Code == 354 {
		d.replies = d.replies[:i]
		text := stuffed(text)
		d.say(text[:len(text)/2], 0)
		d.edit(inContent)
		d.replies = append(d.replies, d.say(text[len(text)/2:]+".\r\n", 1)...)
	}
}

func (d *dialogue) chunk(chunk []byte, last bool) {
	word := ""
	if last {
		word = " LAST"
	}
	d.command("BDAT %d%s\r\n%s", len(chunk), word, chunk)
}

// stuffed returns a content as DATA has it.
func stuffed(text []byte) string {
	return string(bytes.ReplaceAll(text, []byte("\n."), []byte("\n..")))
}

// run sends a message.
func (p *proxy) run(m *message, h *handling) (o observed) {
	text := m.text()
	p.proofs.about(m, text)
	if h.giveUp.how != "" {
		p.hop.about(m, "")
		p.giveUp(m, h, text)
		if has := p.hop.has(); has.delivered != nil || p.hop.open != 0 {
			p.fault("given up: delivered %+v, and %d transactions are open", has.delivered, p.hop.open)
		}
	}
	if h.size != nil {
		p.announce(h.size)
	}
	p.hop.about(m, h.trouble)
	d := &dialogue{proxy: p, h: h}
	d.envelope(m, len(m.rcpts))
	if h.pipelined || d.accepted(m) {
		d.content(text)
	}
	o.rcpts = d.replies[1 : 1+len(m.rcpts)]
	content := d.replies[1+len(m.rcpts):]
	if d.accepted(m) {
		i := slices.IndexFunc(content, func(r wire.Reply) bool { return !r.Positive() })
		if i < 0 {
			i = len(content) - 1
		}
		o.message, content = content[i], content[i+1:] // what comes after a refused chunk is refused
	} else {
		p.say("RSET\r\n", 1)
	}
	if !d.replies[0].Positive() {
		p.fault("%q to MAIL", d.replies[0])
	}
	for _, r := range content {
		if r.Positive() {
			p.fault("%q for nobody, or after a refused chunk", r)
		}
	}
	o.hopHas = p.hop.has()
	if p.hop.open != 0 {
		p.fault("%d transactions are open at the next hop", p.hop.open)
	}
	p.check(m, &o, text)
	o.faults = p.seen()
	return o
}

func (p *proxy) fault(format string, args ...any) {
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
}

// check looks at what the next hop has got.
func (p *proxy) check(m *message, o *observed, text []byte) {
	if len(o.delivered) > 1 {
		p.fault("delivered %d times", len(o.delivered))
	}
	if len(o.delivered) > 0 && o.message.Code != 250 {
		p.fault("delivered, and the reply is %q", o.message)
	}
	for _, d := range o.delivered {
		if want := stuffed(text); !bytes.HasSuffix(d.text, []byte(want)) && !(d.raw && bytes.HasSuffix(d.text, text)) {
			p.fault("delivered another text: %q", d.text)
		}
	}
	for _, d := range append(slices.Clone(o.aborted), o.delivered...) {
		if e := d.envelope; e.From != m.from.written || strings.Join(e.Params, " ") != mailParams {
			p.fault("the next hop has MAIL FROM:<%s> %s", e.From, e.Params)
		}
		for i, to := range d.to {
			if d.params[i] != rcptParams(to) {
				p.fault("the next hop has RCPT TO:<%s> %s", to, d.params[i])
			}
		}
	}
}

// announce begins a message of a size (RFC 1870), and no more.
func (p *proxy) announce(size *big.Int) {
	r := p.say(fmt.Sprintf("MAIL FROM:<b@clean.example> SIZE=%d\r\n", size), 1)[0]
	if fits := size.Cmp(p.largest) <= 0; fits != r.Positive() {
		p.fault("%q to a message of %d bytes, and %d are allowed", r, size, p.largest)
	}
	p.say("RSET\r\n", 1)
}

// giveUp begins a message that it gives up.
func (p *proxy) giveUp(m *message, h *handling, text []byte) {
	d := &dialogue{proxy: p, h: &handling{chunk: h.chunk, pipelined: h.giveUp.how == cutOff}}
	switch h.giveUp.how {
	case cutOff:
		d.cut(m, h.giveUp.after, text)
		return
	case unended:
		d.envelope(m, len(m.rcpts))
		d.chunk(text[:len(text)/3], false)
		if first := d.replies[len(d.replies)-1]; first.Positive() != d.accepted(m) {
			p.fault("%q to a chunk", first)
		}
	default:
		d.envelope(m, min(h.giveUp.after, len(m.rcpts)))
	}
	command := map[string]string{reset: "RSET", unended: "RSET", hello: "EHLO client.example", anew: "MAIL FROM:<b@clean.example>"}[h.giveUp.how]
	if r := p.say(command+"\r\n", 1)[0]; r.Positive() == (h.giveUp.how == anew) {
		p.fault("%q to %s", r, command)
	}
	if h.giveUp.how == anew {
		p.say("RSET\r\n", 1)
	}
}

// cut sends so many thousandths of a message's bytes, but not its end, and begins a new connection.
func (d *dialogue) cut(m *message, thousandths int, text []byte) {
	d.envelope(m, len(m.rcpts))
	begin := d.batch
	d.batch, d.n = "", 0
	content := "DATA\r\n" + stuffed(text) + ".\r\n"
	if d.h.chunk > 0 {
		d.chunk(text, true)
		content = d.batch
	}
	all := begin + content
	sent := all[:len(all)*thousandths/1000]
	if rest, ok := strings.CutPrefix(sent, begin+"DATA\r\n"); ok {
		replies := d.proxy.replies(d.conn.say(begin+"DATA\r\n"), -1)
		if sent = rest; replies[len(replies)-1].Code != 354 {
			sent = ""
		}
	}
	d.proxy.replies(d.conn.say(sent), -1)
	d.proxy.replies(d.conn.hangUp(), -1)
	d.open()
}
