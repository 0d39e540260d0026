package policyservice

import (
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"spamgate/internal/door"
)

// Bounds of what is remembered. A message that is forgotten and asked about again gets a new
// id and one more line in the log. Postfix waits 5 minutes for a client's next command, and
// longer for the end of a large message.
const (
	maxMessages = 10_000
	forgetAfter = time.Hour

	// maxSeen bounds the recipients of a message that are recognised if they are asked
	// about again. More than that are counted again.
	maxSeen = 1000

	// maxRefusals bounds the different refusals of a message: recipients may have lists of
	// their own. Recipients with other refusals are not recognised.
	maxRefusals = 10

	// maxTags bounds the fields that a message gets.
	maxTags = 10
)

// messages remembers the messages that Postfix has asked about, by their keys. It is safe for
// concurrent use.
//
// A message that is asked about comes into the map young. When young is full or has lasted
// half of forgetAfter, it becomes the map old, and the former old one is forgotten. So a
// message is remembered for half of forgetAfter at least, unless half of maxMessages others
// come in that time.
type messages struct {
	mu         sync.Mutex
	young, old map[string]*message
	since      time.Time // when young was empty
}

// get returns the message with a key, or a new one if the key is not known.
func (ms *messages) get(key []byte, now time.Time) *message {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	ms.age(now)
	m := ms.young[string(key)]
	if m != nil {
		return m
	}
	if m = ms.old[string(key)]; m == nil {
		m = &message{}
	}
	ms.young[string(key)] = m
	return m
}

// age makes room in the map young.
func (ms *messages) age(now time.Time) {
	age := now.Sub(ms.since)
	if age > forgetAfter {
		ms.young = nil
	}
	if ms.young == nil || len(ms.young) >= maxMessages/2 || age > forgetAfter/2 {
		ms.young, ms.old, ms.since = map[string]*message{}, ms.young, now
	}
}

// forget forgets a message, so that the next question about it begins anew.
func (ms *messages) forget(key []byte, m *message) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for _, remembered := range []map[string]*message{ms.young, ms.old} {
		if remembered[string(key)] == m {
			delete(remembered, string(key))
		}
	}
}

// message is what the answers about a message depend on. Who uses it holds mu.
type message struct {
	mu sync.Mutex
	*door.Message

	refusals []string // the different answers to recipients that are refused
	seen     []seen
	passed   bool     // for a recipient at least
	noted    bool     // in the log, that it has passed
	tags     []string // those that answers had
}

// seen is a recipient that was asked about.
type seen struct {
	hash    uint64 // of its address
	refusal int    // the index of the answer in refusals, or -1
}

var seed = maphash.MakeSeed()

// recipient returns the answer about a recipient, and false if the lists cannot be asked.
func (m *message) recipient(address []byte, afterEnd bool) (action string, ok bool) {
	hash := maphash.Bytes(seed, address)
	if i := slices.IndexFunc(m.seen, func(s seen) bool { return s.hash == hash }); i >= 0 {
		if i = m.seen[i].refusal; i >= 0 {
			return m.refusals[i], true
		}
		return dunno, true
	}
	a := m.Recipient(path(address))
	if a.Reply.IsZero() {
		m.remember(hash, -1)
		return m.pass(a, afterEnd), true
	}
	if a.NoAnswer {
		return "", false
	}
	action = refusal(a.Reply)
	i := slices.Index(m.refusals, action)
	if i < 0 && len(m.refusals) < maxRefusals {
		i, m.refusals = len(m.refusals), append(m.refusals, action)
	}
	if i >= 0 {
		m.remember(hash, i)
	}
	return action, true
}

// remember remembers the answer to a recipient.
func (m *message) remember(hash uint64, refusal int) {
	if len(m.seen) < maxSeen {
		m.seen = append(m.seen, seen{hash, refusal})
	}
}

// anyRecipient returns the answer about recipients that the question does not name.
func (m *message) anyRecipient(afterEnd bool) string { return m.pass(m.AnyRecipient(), afterEnd) }

// pass returns the answer that lets the message pass. The first one has the tag, and each
// later one a tag that is new: recipients may have lists of their own. Postfix refuses a tag
// after the end of the message, and adds the fields if it accepts any recipient of the message
// at all.
func (m *message) pass(a door.Answer, afterEnd bool) string {
	m.passed = true
	if text := tag(a); text != "" && !afterEnd && len(m.tags) < maxTags && !slices.Contains(m.tags, text) {
		m.tags = append(m.tags, text)
		return text
	}
	return dunno
}

// note logs and counts a message that passes, once. That comes after the answer, so that
// Postfix does not wait for it.
func (m *message) note() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.passed && !m.noted {
		m.noted = true
		m.Passed(true)
	}
}
