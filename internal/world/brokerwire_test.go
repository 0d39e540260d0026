package world

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A line is the connection of a gate to the broker. It speaks NATS's protocol for clients. What
// the gate writes never blocks it, and the handshake takes no time: the library holds a lock
// meanwhile.
type line struct {
	b     *broker
	gate  string
	reads bool // its credentials only permit reading

	// Guarded by broker.mu.
	shaken bool   // the handshake is over
	stalls bool   // it never is
	dead   bool   // one end has closed it
	begun  []byte // of an operation that is not complete
	unsent []operation
	unread []func() // while the gate is cut off
	topics []*topic
	sent   time.Time // when the last message arrives at the gate
	wrote  time.Time // when the last write is made

	mu   sync.Mutex // guards what follows
	more *sync.Cond
	text []byte // that the gate has not read
	end  error  // what a read gets after that
}

// A topic is a subscription.
type topic struct {
	*line
	subject, queue, id string
}

// A post is a message, on its way or stored.
type post struct {
	subject, reply string
	header, data   []byte // the header with its first and last line
	sequence       uint64
	instant        time.Time
}

// door is where a process of a gate connects to the broker.
type door struct {
	b     *broker
	gate  string
	reads bool
	shut  bool // the process has been killed; guarded by broker.mu
	stall bool // the last handshake has stalled; guarded by broker.mu
}

// stalled returns how long the last handshake has stalled. The library holds a lock meanwhile, so that
// the handshake itself ends at once.
func (d *door) stalled() time.Duration {
	d.b.mu.Lock()
	defer d.b.mu.Unlock()
	if d.stall {
		return 5 * time.Second
	}
	return 0
}

// InProcessConn implements nats.InProcessConnProvider.
func (d *door) InProcessConn() (net.Conn, error) {
	d.b.mu.Lock()
	defer d.b.mu.Unlock()
	if d.shut || d.b.cutOff[d.gate] != 0 {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	d.b.lines = slices.DeleteFunc(d.b.lines, func(l *line) bool { return l.dead && d.b.cutOff[l.gate] == 0 })
	f := d.b.fault(d.gate, connecting)
	d.stall = f.what != ""
	l := &line{b: d.b, gate: d.gate, reads: d.reads, stalls: d.stall, text: []byte(`INFO {"server_id":"broker","version":"2.12.0","proto":1,"headers":true,"max_payload":1048576,"jetstream":true}` + "\r\n")}
	l.more = sync.NewCond(&l.mu)
	if d.stall && f.place == 0 {
		l.text, l.end = nil, os.ErrDeadlineExceeded
	}
	d.b.lines = append(d.b.lines, l)
	return l, nil
}

func (l *line) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.text) == 0 {
		if l.end != nil {
			return 0, l.end
		}
		l.more.Wait()
	}
	n := copy(p, l.text)
	l.text = l.text[n:]
	return n, nil
}

// push lets the gate read a text.
func (l *line) push(text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, text...)
	l.more.Broadcast()
}

func (l *line) Write(p []byte) (int, error) {
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	if l.dead {
		return 0, &net.OpError{Op: "write", Net: "tcp", Err: syscall.ECONNRESET}
	}
	l.begun = append(l.begun, p...)
	for {
		o, n := l.parse(l.begun)
		if n == 0 {
			return len(p), nil
		}
		l.begun = l.begun[n:]
		if l.b.cutOff[l.gate] != 0 {
			l.unsent = append(l.unsent, o)
			continue
		}
		o.do()
	}
}

// An operation is something that a gate wants of the broker.
type operation struct {
	instant time.Time
	kind    string
	do      func()
}

// parse returns the first operation in a text, and how long it is; 0: it is not complete.
func (l *line) parse(text []byte) (o operation, n int) {
	end := bytes.Index(text, []byte("\r\n"))
	if end < 0 {
		return o, 0
	}
	o.instant, o.do = time.Now(), func() {} // CONNECT, PONG
	n = end + 2
	words := strings.Fields(string(text[:end]))
	switch last := words[len(words)-1]; strings.ToUpper(words[0]) {
	case "SUB": // SUB subject [queue] id
		t := &topic{line: l, subject: words[1], id: last}
		if len(words) == 4 {
			t.queue = words[2]
		}
		o.do = func() {
			if l.permits("Subscription", t.subject, "_INBOX."+l.gate+".", "spamgate.ask.") {
				l.topics = append(l.topics, t)
			}
		}
	case "UNSUB":
		id := words[1]
		if len(words) == 2 { // else the library counts by itself, and tells the end
			o.do = func() { l.topics = slices.DeleteFunc(l.topics, func(t *topic) bool { return t.id == id }) }
		}
	case "PING":
		o.kind, o.do = "ping", func() { l.send([]byte("PONG\r\n"), "pong", 0, nil) }
		if !l.shaken {
			l.shaken, o.do = true, func() { l.push([]byte("PONG\r\n")) }
			if l.stalls {
				o.do = func() { l.drop(os.ErrDeadlineExceeded) }
			}
		}
	case "PUB", "HPUB": // [H]PUB subject [reply] [header's size] size
		size, _ := strconv.Atoi(last)
		if len(text) < n+size+2 {
			return o, 0
		}
		p := &post{subject: words[1], data: bytes.Clone(text[n : n+size])}
		if words[0] == "HPUB" {
			head, _ := strconv.Atoi(words[len(words)-2])
			p.header, p.data = p.data[:head:head], p.data[head:]
			words = words[:len(words)-1]
		}
		if len(words) == 4 {
			p.reply = words[2]
		}
		n += size + 2
		if strings.HasPrefix(p.subject, "$JS.API.CONSUMER.DELETE.") {
			l.b.unread(l, p)
			break
		}
		o.kind, o.do = kindOf(p), func() {
			if l.permits("Publish", p.subject, "spamgate.read."+l.gate) {
				l.b.arrived(l, p)
			}
		}
	}
	return o, n
}

const denied = "denied"

// permits reports whether the gate may use a subject, and tells it if not.
func (l *line) permits(what, subject string, may ...string) bool {
	if !l.reads || slices.ContainsFunc(may, func(s string) bool { return strings.HasPrefix(subject, s) }) {
		return true
	}
	if subject != "$JS.API.STREAM.INFO.KV_spamgate-lists" { // by which it learns that it only reads
		l.b.fail("%s only reads, and uses %s", l.gate, subject)
	}
	l.send(fmt.Appendf(nil, "-ERR 'Permissions Violation for %s to %q'\r\n", what, subject), denied, 0, nil)
	return false
}

// text returns a message as the protocol has it.
func (t *topic) text(p *post) []byte {
	head := ""
	if p.header != nil {
		head = "H"
	}
	text := fmt.Appendf(nil, "%sMSG %s %s ", head, p.subject, t.id)
	if p.reply != "" {
		text = fmt.Appendf(text, "%s ", p.reply)
	}
	if p.header != nil {
		text = fmt.Appendf(text, "%d ", len(p.header))
	}
	return fmt.Appendf(text, "%d\r\n%s%s\r\n", len(p.header)+len(p.data), p.header, p.data)
}

// send lets a text arrive at the gate after a while, and after what was sent before. Then, if not
// nil, is called when it has arrived.
func (l *line) send(text []byte, kind string, late time.Duration, then func()) {
	instant := later(time.Now().Add(late+l.b.delay(l.gate, "to", kind)), l.sent.Add(time.Microsecond))
	l.sent = instant
	var f fault
	if kind != denied { // of an error that it does not know, the library closes the connection for good
		f = l.b.fault(l.gate, "bytes "+kind)
	}
	if f.place > 0 {
		if !f.ends { // else the library may take what follows for the size, and ask for 900 GB
			f.place = max(f.place, bytes.IndexByte(text, '\n')+1)
		}
		end := min(len(text), f.place+8)
		if f.ends || kind == "watch KV_spamgate-state" { // nobody reads a value again that seems to be another one's
			end, f.ends = len(text), true
		} else {
			l.b.garbled = true
		}
		text = slices.Delete(text, min(f.place, end), end)
	}
	arrive := func() {
		l.push(text)
		if f.ends {
			l.reset()
		}
		if then != nil && f.place == 0 {
			then()
		}
	}
	l.b.after(time.Until(instant), func() {
		if l.b.cutOff[l.gate] != 0 {
			l.unread = append(l.unread, arrive)
			return
		}
		arrive()
	})
}

// heal lets through what was held while the gate was cut off. What it has written comes although
// it has closed the connection meanwhile, as with TCP.
func (l *line) heal() {
	slices.SortStableFunc(l.unsent, func(x, y operation) int { // those of one instant, by its goroutines
		return cmp.Or(x.instant.Compare(y.instant), strings.Compare(x.kind, y.kind))
	})
	all := l.unread
	for _, o := range l.unsent {
		all = append(all, o.do)
	}
	for i, do := range all {
		late := time.Duration(i+1) * time.Microsecond
		l.b.after(late, do)
		l.sent = later(l.sent, time.Now().Add(late))
	}
	l.unsent, l.unread = nil, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Close is what the gate does.
func (l *line) Close() error {
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	l.drop(net.ErrClosed)
	return nil
}

// drop ends the connection.
func (l *line) drop(err error) {
	l.dead, l.topics = true, nil
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end == nil {
		l.end = err
	}
	l.more.Broadcast()
}

// reset ends the connection as the broker.
func (l *line) reset() { l.drop(io.EOF) }

func (l *line) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (l *line) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (l *line) SetDeadline(time.Time) error      { return nil }
func (l *line) SetReadDeadline(time.Time) error  { return nil }
func (l *line) SetWriteDeadline(time.Time) error { return nil }
