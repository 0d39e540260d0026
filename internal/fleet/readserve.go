package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A gate with credentials that only permit reading has no rights in JetStream: NATS does not check
// where a request wants its reply, so that who may ask JetStream for a message has the server write
// it anywhere. Such a gate asks the other gates, which answer to its own inbox alone.

// readSubject is followed by the name of the gate that asks, as escaped writes it. Servers let a
// reader publish to that of its own name only.
const readSubject = "spamgate.read."

// readers is the queue group of those who answer: one of them gets a question.
const readers = "spamgate"

// ReadSubject, Inbox and ClientName return the only subject to which a gate that only reads
// publishes, the beginning of the subjects at which a gate gets answers, and how it names itself to
// a server.
func ReadSubject(name string) string { return readSubject + escaped(name) }
func Inbox(name string) string       { return "_INBOX." + escaped(name) }
func ClientName(name string) string  { return "spamgate " + name }

// What a reader asks for.
const (
	askList    = "list"    // the value of a list's key
	askHistory = "history" // earlier values of a list's key, the newest ones last
	askState   = "state"   // the shared values
	askObject  = "object"  // where the chunks of a content begin
	askChunk   = "chunk"   // the next chunk of a content
	askAlive   = "alive"   // to be shown among the members
	askGone    = "gone"    // to be shown no more
)

// maxRead bounds the values in an answer, in bytes. As JSON they are a third larger, and NATS takes
// 1 MiB by default.
const maxRead = 512 << 10

// readQuestion is a question of a reader.
type readQuestion struct {
	Do       string          `json:"do"`
	Key      string          `json:"key,omitempty"`      // of a list, or the name of an object
	Revision uint64          `json:"revision,omitempty"` // that the reader has
	Sum      string          `json:"sum,omitempty"`      // of the shared values that it has
	After    string          `json:"after,omitempty"`    // the last key that it got
	NUID     string          `json:"nuid,omitempty"`     // of an object
	Sequence uint64          `json:"sequence,omitempty"` // of the stream of contents, from which on the chunk may be
	Sign     json.RawMessage `json:"sign,omitempty"`     // of life
}

// readAnswer is the answer to it.
type readAnswer struct {
	Error string `json:"error,omitempty"`
	None  bool   `json:"none,omitempty"` // there is no such thing
	Same  bool   `json:"same,omitempty"` // the reader has it

	Values []readValue `json:"values,omitempty"`
	More   bool        `json:"more,omitempty"` // there are more values, after the last key
	Sum    string      `json:"sum,omitempty"`

	NUID     string `json:"nuid,omitempty"`
	Size     int64  `json:"size,omitempty"` // of an object
	Sequence uint64 `json:"sequence,omitempty"`
	Data     []byte `json:"data,omitempty"`
}

type readValue struct {
	Key      string `json:"key,omitempty"`
	Value    []byte `json:"value"`
	Revision uint64 `json:"revision"`
}

// desk answers gates that only read.
type desk struct {
	*Member
	mu    sync.Mutex
	shown map[string]time.Time // when a reader was last shown among the members, by its name
}

// serve answers them while this one may write.
func (m *desk) serve(ctx context.Context) error {
	slots := make(chan struct{}, maxAtOnce)
	for {
		if m.wait(ctx, func() bool { return m.writer && m.isLinked() }) != nil {
			return nil
		}
		sub, err := m.nc.QueueSubscribe(readSubject+"*", readers, func(q *nats.Msg) {
			reader := strings.TrimPrefix(q.Subject, readSubject)
			// The reply goes out with this gate's rights: it goes to the reader's inbox, or nowhere.
			if !strings.HasPrefix(q.Reply, "_INBOX."+reader+".") || len(q.Data) > maxQuestion {
				return
			}
			m.inSlot(slots, func() { m.answerTo(reader, q) })
		})
		if err != nil {
			return err
		}
		_ = sub.SetPendingLimits(1000, 10<<20)
		_ = m.wait(ctx, func() bool { return !m.writer || !m.isLinked() })
		_ = sub.Unsubscribe() // an error says that the connection is closed
	}
}

// answerTo answers a question of a reader.
func (m *desk) answerTo(reader string, q *nats.Msg) {
	var a readAnswer
	err := m.try(m.ctx, "answering a reader", func(ctx context.Context) error {
		ctx, cancel := m.brief(ctx)
		defer cancel()
		var question readQuestion
		if err := json.Unmarshal(q.Data, &question); err != nil {
			return err
		}
		b, err := m.open()
		if err != nil {
			return err
		}
		return m.answerRead(ctx, b, reader, &question, &a)
	})
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound), errors.Is(err, jetstream.ErrObjectNotFound), errors.Is(err, jetstream.ErrKeyNotFound):
		a = readAnswer{None: true}
	case err != nil:
		a = readAnswer{Error: shortened(err.Error())}
	}
	text, err := json.Marshal(&a)
	if err == nil {
		err = q.Respond(text)
	}
	if err != nil {
		m.log.Debug("a question of a reader is not answered", "error", err)
	}
}

func (m *desk) answerRead(ctx context.Context, b *buckets, reader string, q *readQuestion, a *readAnswer) error {
	switch q.Do {
	case askList:
		if !isListKey(q.Key) {
			return errQuestion
		}
		value, revision, err := b.last(ctx, bucketLists, q.Key)
		if a.Same = revision == q.Revision && revision > 0; !a.Same {
			a.Values = []readValue{{q.Key, value, revision}}
		}
		return err
	case askHistory:
		if !isListKey(q.Key) {
			return errQuestion
		}
		values, err := b.history(ctx, q.Key)
		room := maxRead
		for _, v := range slices.Backward(values) {
			if room -= len(v.Value); room < 0 {
				break
			}
			a.Values = append([]readValue{v}, a.Values...)
		}
		return err
	case askState:
		return m.answerState(q, a)
	case askObject:
		info, err := b.content.GetInfo(ctx, q.Key)
		if err == nil && info.Opts != nil && info.Opts.Link != nil {
			err = errContent
		}
		if err == nil {
			a.NUID, a.Size = info.NUID, int64(info.Size)
		}
		return err
	case askChunk:
		if !isInstance(q.NUID) {
			return errQuestion
		}
		stream, err := b.js.Stream(ctx, "OBJ_"+bucketContent)
		if err != nil {
			return err
		}
		msg, err := stream.GetMsg(ctx, q.Sequence, jetstream.WithGetMsgSubject(chunkSubject(q.NUID)))
		if err == nil {
			a.Sequence, a.Data = msg.Sequence, msg.Data
		}
		return err
	case askAlive, askGone:
		return m.answerAlive(ctx, b, reader, q)
	}
	return errQuestion
}

// errQuestion says that a reader asks for what it cannot get.
var errQuestion = errors.New("this version of spamgate does not answer that")

// isListKey reports whether a text is a key of keyOf.
func isListKey(key string) bool {
	group, name, found := strings.Cut(key, ".")
	_, ok := unescaped(name)
	return found && ok && escaped(group) == group
}

// answerState answers with the shared values that this gate knows.
func (m *desk) answerState(q *readQuestion, a *readAnswer) error {
	m.valueMu.Lock()
	defer m.valueMu.Unlock()
	keys := slices.Sorted(maps.Keys(m.state))
	sum := sha256.New()
	for _, key := range keys {
		fmt.Fprintf(sum, "%s %d %x\n", key, m.state[key].Sequence, sha256.Sum256(m.state[key].Value))
	}
	a.Sum = hex.EncodeToString(sum.Sum(nil))
	if a.Same = a.Sum == q.Sum; a.Same {
		return nil
	}
	room := maxRead
	for _, key := range keys {
		if key <= q.After {
			continue
		}
		value, err := json.Marshal(m.state[key])
		if err != nil {
			return err
		}
		if room -= len(value) + len(key); room < 0 {
			a.More = true
			break
		}
		a.Values = append(a.Values, readValue{key, value, m.state[key].revision})
	}
	return nil
}

// may reports whether a reader may be shown now.
func (m *desk) may(reader string, each time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for name, instant := range m.shown {
		if now.Sub(instant) > each {
			delete(m.shown, name)
		}
	}
	if _, ok := m.shown[reader]; ok || len(m.shown) >= maxMembers {
		return false
	}
	m.shown[reader] = now
	return true
}

// answerAlive shows a reader among the members, by its own name and as one that only reads, or
// removes it there.
func (m *desk) answerAlive(ctx context.Context, b *buckets, reader string, q *readQuestion) error {
	var p Presence
	if err := json.Unmarshal(q.Sign, &p); err != nil {
		return err
	}
	key := reader + "." + p.Instance
	p, ok := parseSign(key, q.Sign)
	if !ok {
		return errQuestion
	}
	p.ReadOnly = true
	value, err := json.Marshal(&p)
	if err != nil {
		return err
	}
	if q.Do == askAlive && !m.may(reader, m.o.times.presence/2) {
		return nil
	}
	kv, err := b.members(ctx)
	switch {
	case err != nil:
		return err
	case q.Do == askGone:
		err = kv.Delete(ctx, key)
	default:
		_, err = kv.Put(ctx, key, value)
	}
	b.closeSide(bucketMembers, err)
	return err
}
