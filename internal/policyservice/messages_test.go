package policyservice

import (
	"fmt"
	"testing"
	"time"
)

// TestMessagesAreBounded: a flood of messages leaves a bounded number, of which the last ones
// and those that are asked about again and again are known.
func TestMessagesAreBounded(t *testing.T) {
	var ms messages
	now := time.Now()
	first, kept := ms.get([]byte("first"), now), ms.get([]byte("kept"), now)
	for i := range 3 * maxMessages {
		last := fmt.Append(nil, i)
		m := ms.get(last, now)
		if ms.get(last, now) != m {
			t.Fatalf("message %d is forgotten at once", i)
		}
		if i%1000 == 0 && ms.get([]byte("kept"), now) != kept {
			t.Fatalf("a message that is asked about is forgotten after %d others", i)
		}
	}
	if n := len(ms.young) + len(ms.old); n > maxMessages {
		t.Errorf("%d messages", n)
	}
	if ms.get([]byte("first"), now) == first {
		t.Error("the first message is still known")
	}
}

// TestMessagesAge: a message is known for half of forgetAfter after each question, and not
// much longer than all of it.
func TestMessagesAge(t *testing.T) {
	for _, others := range []time.Duration{0, time.Minute} { // between other messages, if there are any
		for _, c := range []struct {
			pause time.Duration
			known bool
		}{
			{time.Second, true},
			{forgetAfter / 2, true},
			{forgetAfter + 3*time.Minute, false},
			{5 * forgetAfter, false},
		} {
			var ms messages
			now := time.Now()
			m := ms.get([]byte("key"), now)
			for range 3 {
				for after := others; others > 0 && after < c.pause; after += others {
					ms.get([]byte("other"), now.Add(after))
				}
				now = now.Add(c.pause)
				again := ms.get([]byte("key"), now)
				if (again == m) != c.known {
					t.Errorf("after %v, others each %v: known %v", c.pause, others, again == m)
				}
				m = again
			}
		}
	}
}

// TestForget: only the message itself is forgotten, in both maps.
func TestForget(t *testing.T) {
	var ms messages
	now := time.Now()
	m := ms.get([]byte("key"), now)
	ms.get([]byte("key"), now.Add(forgetAfter/2+1)) // m is in both
	ms.forget([]byte("key"), &message{})
	if ms.get([]byte("key"), now) != m {
		t.Error("another one's message is forgotten")
	}
	ms.forget([]byte("key"), m)
	if ms.get([]byte("key"), now) == m {
		t.Error("the message is still known")
	}
}

// TestSeenIsBounded: a message with more recipients than are recognised is judged all the
// same.
func TestSeenIsBounded(t *testing.T) {
	s := start(t, newChecker(t))
	m := &message{}
	for i := range 2 * maxSeen {
		q := &request{state: []byte("RCPT"), sender: []byte("a@reject.example"), recipient: fmt.Append(nil, i, "@example.net"), about: m}
		if action, ok := s.judgeMessage(q, false); !ok || action[:4] != "550 " {
			t.Fatal(action)
		}
	}
	if len(m.seen) != maxSeen {
		t.Errorf("%d recipients are kept", len(m.seen))
	}
}
