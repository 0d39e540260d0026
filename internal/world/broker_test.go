package world

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A broker is a model of a NATS server with JetStream, as far as a fleet uses it: streams whose
// subjects have a history, compare-and-set, reads of which some come from a server that lags
// behind, and consumers for watches.
//
// Nothing in it depends on the order of goroutines. Each message is on its way for a time that
// follows from the seed, the gate, and what kind of message it is, so that two hardly ever arrive
// at the same instant; and time moves only once all have done what the last one caused.
type broker struct {
	seed  uint64
	tell  func(format string, args ...any)
	fail  func(format string, args ...any)
	wrote func(gate, kind string, value []byte)

	mu       sync.Mutex
	lines    []*line
	cutOff   map[string]int // gates, and how often
	streams  map[string]*stream
	backup   map[string]*stream
	count    map[string]int
	faults   []fault
	arrivals []arrival // at this instant
	restarts int
	garbled  bool // bytes of a message were lost
	over     bool
}

type stream struct {
	config  json.RawMessage
	perKey  int           // how many messages a subject keeps; 0: all
	age     time.Duration // how long; 0: for ever
	created time.Time
	first   uint64 // sequence before all
	last    uint64
	posts   []*post // in the order of their sequences
	past    []*post // all that ever were
	readers []*reader
}

// A reader is a consumer: it brings what a stream has, and gets, to a subject.
type reader struct {
	stream  *stream
	name    string
	subject string // the stream's name
	gate    string
	deliver string
	open    bool // the answer to who has made it has arrived
	filters []string
	first   []*post // what it still has to deliver of what was there
	next    uint64  // sequence in the stream, after that
	number  uint64  // of what it has delivered
	beat    time.Duration
	idle    bool // nobody listened since the last beat
}

func newBroker(seed uint64) *broker {
	return &broker{seed: seed, cutOff: map[string]int{}, streams: map[string]*stream{}, count: map[string]int{}}
}

// draw returns a number that follows from the seed and from what is drawn, and how often.
func (b *broker) draw(what ...string) uint64 {
	key := strings.Join(what, " ")
	b.count[key]++
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s %d", b.seed, key, b.count[key])
	x := h.Sum64() // whose upper bits alone are random enough
	x ^= x >> 31
	x *= 0x9e3779b97f4a7c15
	return x ^ x>>29
}

// delay returns how long a message is on its way: below 2 ms, of a few up to 60 ms.
func (b *broker) delay(what ...string) time.Duration {
	x := b.draw(what...)
	d := 50*time.Microsecond + time.Duration(x%uint64(2*time.Millisecond))
	if x>>60 == 0 {
		d *= 30
	}
	return d
}

// after does something later, if the world is not over.
func (b *broker) after(d time.Duration, do func()) {
	time.AfterFunc(d, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if !b.over {
			do()
		}
	})
}

// An arrival is a message that a gate has published.
type arrival struct {
	*line
	*post
	kind    string
	instant time.Time
}

// arrived handles what a gate has published, in an order that does not depend on which of the
// gate's goroutines was faster.
func (b *broker) arrived(l *line, p *post) {
	now := time.Now()
	atOnce := func(a arrival) bool { return a.instant.Equal(now) }
	first := !slices.ContainsFunc(b.arrivals, atOnce)
	b.arrivals = append(b.arrivals, arrival{l, p, kindOf(p), now})
	if !first {
		return
	}
	b.after(1, func() {
		var all []arrival
		for _, a := range b.arrivals {
			if atOnce(a) {
				all = append(all, a)
			}
		}
		b.arrivals = slices.DeleteFunc(b.arrivals, atOnce)
		slices.SortStableFunc(all, func(x, y arrival) int {
			return cmp.Or(strings.Compare(x.gate, y.gate), strings.Compare(x.kind, y.kind))
		})
		for _, a := range all {
			b.handle(a.line, a.post, a.kind)
		}
	})
}

func (b *broker) handle(l *line, p *post, kind string) {
	f := b.fault(l.gate, kind)
	late := b.delay(l.gate, kind) + f.before
	if isWrite(p.subject) { // a stream gets what one client writes in this order
		instant := later(time.Now().Add(late), l.wrote.Add(time.Microsecond))
		l.wrote, late = instant, time.Until(instant)
	}
	if f.lost {
		return
	}
	restarts := b.restarts
	b.after(late, func() {
		if b.restarts != restarts { // it was on its way to the one before
			return
		}
		a := b.do(l, p, f)
		if f.breaks {
			l.reset()
			return
		}
		if a == nil {
			for range f.times() {
				if !b.route(p, kind, 0, nil) && p.reply != "" {
					a = &answer{header: []byte("NATS/1.0 503\r\n\r\n")}
				}
			}
		}
		if a != nil && p.reply != "" && !f.silent {
			b.route(&post{subject: p.reply, header: a.header, data: a.data}, "answer "+kind, f.after, a.then)
		}
	})
}

func isWrite(subject string) bool {
	return strings.HasPrefix(subject, "$KV.") || strings.HasPrefix(subject, "$O.")
}

// kindOf returns what kind a message is of, without names that are random.
func kindOf(p *post) string {
	subject := p.subject
	parts := strings.Split(subject, ".")
	switch {
	case strings.HasPrefix(subject, "$JS.API.CONSUMER."):
		_, policy, _ := strings.Cut(string(p.data), `"deliver_policy":"`)
		policy, _, _ = strings.Cut(policy, `"`)
		return strings.Join(parts[2:5], " ") + " " + policy
	case strings.HasPrefix(subject, "$JS.API.DIRECT.GET.KV_spamgate-members"):
		return "DIRECT GET KV_spamgate-members"
	case strings.HasPrefix(subject, "$JS.API."):
		return strings.Join(parts[2:], " ")
	case strings.HasPrefix(subject, "$O.") && len(parts) > 2, strings.HasPrefix(subject, "$KV.spamgate-members"):
		return "write " + strings.Join(parts[1:3], " ")
	case isWrite(subject):
		return "write " + strings.Join(parts[1:], " ")
	case strings.HasPrefix(subject, "spamgate.read."):
		var q struct{ Do, Key string }
		_ = json.Unmarshal(p.data, &q)
		return "ask " + subject + " " + q.Do + " " + strings.SplitN(q.Key, ".", 2)[0]
	case strings.HasPrefix(subject, "_INBOX."):
		return "say " + parts[1]
	}
	return "say " + subject
}

// An answer is what JetStream answers.
type answer struct {
	header, data []byte
	then         func() // when it has arrived
}

// route sends a message to those who have subscribed, and reports whether there are any.
func (b *broker) route(p *post, kind string, late time.Duration, then func()) (any bool) {
	queues := map[string]bool{}
	for _, l := range b.lines {
		for _, t := range l.topics {
			if !matches(t.subject, p.subject) || t.queue != "" && queues[t.queue] {
				continue
			}
			queues[t.queue], any = true, true
			t.send(t.text(p), kind, late, then)
		}
	}
	return any
}

// matches reports whether a subject is one of a pattern.
func matches(pattern, subject string) bool {
	want, have := strings.Split(pattern, "."), strings.Split(subject, ".")
	for i, w := range want {
		if w == ">" {
			return len(have) > i
		}
		if i >= len(have) || w != "*" && w != have[i] {
			return false
		}
	}
	return len(want) == len(have)
}

// do does what a message wants of JetStream. The answer is nil if nobody there gets it.
func (b *broker) do(l *line, p *post, f fault) *answer {
	if isWrite(p.subject) {
		name := streamOf(p.subject)
		s := b.stream(name)
		if s == nil {
			return nil
		}
		return &answer{data: b.write(l, name, s, p)}
	}
	question, isAPI := strings.CutPrefix(p.subject, "$JS.API.")
	if !isAPI {
		return nil
	}
	parts := append(strings.SplitN(question, ".", 4), "")
	what, name := parts[0]+" "+parts[1], parts[2]
	if what == "STREAM MSG" { // STREAM.MSG.GET.name
		name = parts[3]
	}
	s := b.stream(name)
	switch {
	case what == "DIRECT GET" && s == nil:
		return nil
	case what == "DIRECT GET":
		if f.older > 0 {
			b.tell("%s reads %s as it was %d writes ago", l.gate, parts[3], f.older)
		}
		return s.direct(name, parts[3], p.data, f.older)
	case what == "STREAM CREATE":
		return &answer{data: b.create(l, name, p.data)}
	case s == nil:
		return &answer{data: failure(404, 10059, "stream not found")}
	case what == "STREAM MSG":
		return s.get(p.data)
	case what == "STREAM INFO":
		return &answer{data: s.info()}
	case what == "STREAM PURGE":
		return s.purge(p.data)
	case what == "CONSUMER CREATE":
		consumer, _, _ := strings.Cut(parts[3], ".")
		return b.read(l, s, name, consumer, p.data)
	}
	panic("the broker does not know " + p.subject)
}

// stream returns a stream, without what is too old; nil if there is none.
func (b *broker) stream(name string) *stream {
	s := b.streams[name]
	if s != nil && s.age > 0 {
		s.posts = slices.DeleteFunc(s.posts, func(p *post) bool { return time.Since(p.instant) > s.age })
	}
	return s
}

func streamOf(subject string) string {
	parts := strings.SplitN(subject, ".", 3)
	if parts[0] == "$O" {
		return "OBJ_" + parts[1]
	}
	return "KV_" + parts[1]
}

func failure(code, number int, why string) []byte {
	return fmt.Appendf(nil, `{"error":{"code":%d,"err_code":%d,"description":%q}}`, code, number, why)
}

// create makes a stream.
func (b *broker) create(l *line, name string, config []byte) []byte {
	if s := b.streams[name]; s != nil {
		if bytes.Equal(s.config, config) {
			return s.info()
		}
		return failure(400, 10058, "stream name already in use with a different configuration")
	}
	var c struct {
		PerKey int           `json:"max_msgs_per_subject"`
		Age    time.Duration `json:"max_age"`
		First  uint64        `json:"first_seq"`
	}
	_ = json.Unmarshal(config, &c)
	b.streams[name] = &stream{config: config, perKey: c.PerKey, age: c.Age, created: time.Now(), first: max(c.First, 1) - 1, last: max(c.First, 1) - 1}
	b.tell("%s makes %s", l.gate, name)
	return b.streams[name].info()
}

func (s *stream) info() []byte {
	created, _ := s.created.MarshalText()
	return fmt.Appendf(nil, `{"config":%s,"created":%q,"state":{"messages":%d,"last_seq":%d}}`, s.config, created, len(s.posts), s.last)
}

// newest returns the newest message of a subject in some; nil if there is none.
func newest(posts []*post, subject string) *post {
	for _, p := range slices.Backward(posts) {
		if matches(subject, p.subject) {
			return p
		}
	}
	return nil
}

// write stores a message, unless it expects another one before it.
func (b *broker) write(l *line, name string, s *stream, p *post) []byte {
	before := uint64(0)
	if n := newest(s.posts, p.subject); n != nil {
		before = n.sequence
	}
	if expected, ok := headerOf(p.header, "Nats-Expected-Last-Subject-Sequence"); ok && expected != strconv.FormatUint(before, 10) {
		if !strings.HasSuffix(p.subject, ".probe") {
			b.tell("%s: %s is refused", l.gate, kindOf(p))
		}
		return failure(400, 10071, fmt.Sprintf("wrong last sequence: %d", before))
	}
	if rollup, _ := headerOf(p.header, "Nats-Rollup"); rollup == "sub" {
		s.posts = slices.DeleteFunc(s.posts, func(o *post) bool { return o.subject == p.subject })
	}
	s.last++
	p = &post{subject: p.subject, header: withoutControl(p.header), data: p.data, sequence: s.last, instant: time.Now()}
	s.keep(p)
	s.past = append(s.past, p)
	if name == "KV_spamgate-lists" || name == "KV_spamgate-state" || strings.HasPrefix(p.subject, "$O.spamgate-content.M.") {
		b.wrote(l.gate, kindOf(p), p.data)
	}
	for _, r := range s.readers {
		b.pump(r)
	}
	return fmt.Appendf(nil, `{"stream":%q,"seq":%d}`, name, s.last)
}

// keep stores a message in place of the oldest one of its subject, if that has as many as it may.
func (s *stream) keep(p *post) {
	kept := 0
	for i := len(s.posts) - 1; i >= 0; i-- {
		if s.posts[i].subject != p.subject {
			continue
		}
		if kept++; kept == s.perKey {
			s.posts = slices.Delete(s.posts, i, i+1)
		}
	}
	s.posts = append(s.posts, p)
}

// headerOf returns a field of a header.
func headerOf(header []byte, name string) (value string, ok bool) {
	for field := range strings.SplitSeq(string(header), "\r\n") {
		if k, v, found := strings.Cut(field, ":"); found && k == name {
			return strings.TrimSpace(v), true
		}
	}
	return "", false
}

// withoutControl returns a header without what is for JetStream; nil if nothing is left.
func withoutControl(header []byte) []byte {
	if op, ok := headerOf(header, "KV-Operation"); ok {
		return []byte("NATS/1.0\r\nKV-Operation: " + op + "\r\n\r\n")
	}
	return nil
}

// direct returns the newest message of a subject, or that before some writes. Without a subject the
// question is for the next one.
func (s *stream) direct(name, subject string, question []byte, older int) *answer {
	posts := s.posts
	if subject == "" {
		var q struct {
			Seq  uint64
			Next string `json:"next_by_subj"`
		}
		_ = json.Unmarshal(question, &q)
		i := slices.IndexFunc(posts, func(p *post) bool { return p.sequence >= q.Seq && p.subject == q.Next })
		posts, subject, older = posts[:i+1], q.Next, 0
	}
	if older > 0 {
		posts = s.past[:max(0, len(s.past)-older)]
	}
	p := newest(posts, subject)
	if p == nil {
		return &answer{header: []byte("NATS/1.0 404 Message Not Found\r\n\r\n")}
	}
	header := fmt.Appendf(nil, "NATS/1.0\r\nNats-Stream: %s\r\nNats-Subject: %s\r\nNats-Sequence: %d\r\nNats-Time-Stamp: %s\r\n", name, p.subject, p.sequence, p.instant.UTC().Format(time.RFC3339Nano))
	if op, ok := headerOf(p.header, "KV-Operation"); ok {
		header = fmt.Appendf(header, "KV-Operation: %s\r\n", op)
	}
	return &answer{header: append(header, "\r\n"...), data: p.data}
}

// get answers what the leader of the servers has.
func (s *stream) get(question []byte) *answer {
	var q struct {
		Last string `json:"last_by_subj"`
	}
	_ = json.Unmarshal(question, &q)
	p := newest(s.posts, q.Last)
	if p == nil {
		return &answer{data: failure(404, 10037, "no message found")}
	}
	return &answer{data: fmt.Appendf(nil, `{"message":{"seq":%d}}`, p.sequence)} // all that a gate looks at
}

func (s *stream) purge(question []byte) *answer {
	var q struct{ Filter string }
	_ = json.Unmarshal(question, &q)
	n := len(s.posts)
	s.posts = slices.DeleteFunc(s.posts, func(p *post) bool { return matches(q.Filter, p.subject) })
	return &answer{data: fmt.Appendf(nil, `{"success":true,"purged":%d}`, n-len(s.posts))}
}

// read makes a consumer.
func (b *broker) read(l *line, s *stream, subject, name string, question []byte) *answer {
	var q struct {
		Config struct {
			Deliver string        `json:"deliver_subject"`
			Policy  string        `json:"deliver_policy"`
			Start   uint64        `json:"opt_start_seq"`
			Filter  string        `json:"filter_subject"`
			Filters []string      `json:"filter_subjects"`
			Beat    time.Duration `json:"idle_heartbeat"`
		} `json:"config"`
	}
	var config struct {
		Config json.RawMessage `json:"config"`
	}
	_, _ = json.Unmarshal(question, &q), json.Unmarshal(question, &config)
	r := &reader{stream: s, subject: subject, name: name, gate: l.gate, deliver: q.Config.Deliver, filters: q.Config.Filters, beat: q.Config.Beat, next: s.last + 1}
	if q.Config.Filter != "" {
		r.filters = append(r.filters, q.Config.Filter)
	}
	seen := map[string]bool{}
	for _, p := range slices.Backward(s.posts) {
		if !r.wants(p) || q.Config.Policy == "last_per_subject" && seen[p.subject] || p.sequence < q.Config.Start {
			continue
		}
		seen[p.subject] = true
		r.first = slices.Insert(r.first, 0, p)
	}
	s.readers = append(s.readers, r)
	b.beat(r)
	text, _ := json.Marshal(map[string]any{"stream_name": subject, "name": name, "config": config.Config, "created": time.Now(), "num_pending": len(r.first), "push_bound": true})
	return &answer{data: text, then: func() { // the library holds a lock of the watch until then
		r.open = true
		b.pump(r)
	}}
}

// unread removes a consumer. The answer takes no time: of two goroutines of the library that want to
// remove one, now the one and now the other waits for it.
func (b *broker) unread(l *line, p *post) {
	parts := strings.Split(p.subject, ".")
	if s := b.streams[parts[4]]; s != nil {
		s.readers = slices.DeleteFunc(s.readers, func(r *reader) bool { return r.name == parts[5] })
	}
	for _, t := range l.topics {
		if matches(t.subject, p.reply) {
			l.push(t.text(&post{subject: p.reply, data: []byte(`{"success":true}`)}))
		}
	}
}

func (r *reader) wants(p *post) bool {
	return slices.ContainsFunc(r.filters, func(f string) bool { return matches(f, p.subject) })
}

// pump delivers what a consumer has not delivered yet, if somebody listens.
func (b *broker) pump(r *reader) {
	if !r.open || !slices.Contains(r.stream.readers, r) || len(b.listeners(r.deliver)) == 0 {
		return
	}
	for _, p := range r.stream.posts {
		if p.sequence >= r.next && r.wants(p) {
			r.first = append(r.first, p)
		}
	}
	r.next = r.stream.last + 1
	for i, p := range r.first {
		r.number++
		f := b.fault(r.gate, "watch "+r.subject)
		reply := fmt.Sprintf("$JS.ACK.%s.%s.1.%d.%d.%d.%d", r.subject, r.name, p.sequence, r.number, p.instant.UnixNano(), len(r.first)-i-1)
		for range f.times() {
			b.deliver(r, &post{subject: p.subject, reply: reply, header: p.header, data: p.data}, f.before)
		}
	}
	r.first = nil
}

// listeners returns the subscriptions of a subject that one consumer has.
func (b *broker) listeners(subject string) (all []*topic) {
	for _, l := range b.lines {
		for _, t := range l.topics {
			if t.subject == subject {
				all = append(all, t)
			}
		}
	}
	return all
}

// deliver sends a message to the subject of a consumer.
func (b *broker) deliver(r *reader, p *post, late time.Duration) {
	for _, t := range b.listeners(r.deliver) {
		t.send(t.text(p), "watch "+r.subject, late, nil)
	}
}

// beat shows now and then that a consumer is there, until nobody listens any more.
func (b *broker) beat(r *reader) {
	b.after(r.beat+b.delay(r.gate, "beat", r.subject), func() {
		if !slices.Contains(r.stream.readers, r) {
			return
		}
		idle := len(b.listeners(r.deliver)) == 0
		if idle && r.idle {
			r.stream.readers = slices.DeleteFunc(r.stream.readers, func(o *reader) bool { return o == r })
			return
		}
		r.idle = idle
		b.pump(r)
		b.deliver(r, &post{subject: r.deliver, header: fmt.Appendf(nil, "NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: %d\r\nNats-Last-Stream: %d\r\n\r\n", r.number, r.next-1)}, 0)
		b.beat(r)
	})
}
