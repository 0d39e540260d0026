package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Answer answers a question of another gate. Question is hostile.
type Answer func(ctx context.Context, question []byte) ([]byte, error)

const (
	askSubject = "spamgate.ask."

	maxQuestion = 64 << 10
	maxAnswer   = 768 << 10 // below what NATS servers take by default
	maxAnswers  = 128 << 20 // of all members together
	maxAtOnce   = 4         // questions that are answered at the same time; others wait
	answerTime  = 10 * time.Second
)

// reply is a reply to a question.
type reply struct {
	Member string `json:"member"`
	Error  string `json:"error,omitempty"`
	Answer []byte `json:"answer,omitempty"`
}

// Handle says who answers questions about a subject, such as "decisions". It is called once
// for each subject, after Open.
func (m *Member) Handle(subject string, answer Answer) error {
	if escaped(subject) != subject {
		return fmt.Errorf("%q is not a subject", subject)
	}
	slots := make(chan struct{}, maxAtOnce)
	sub, err := m.nc.Subscribe(askSubject+subject, func(q *nats.Msg) {
		if q.Reply == "" || len(q.Data) > maxQuestion {
			return
		}
		m.inSlot(slots, func() { m.answer(q, answer) })
	})
	if err != nil {
		return err
	}
	return sub.SetPendingLimits(1000, 10<<20)
}

// inSlot runs a function once there is room for it, unless the member is closed. NATS calls it for one
// question after the other.
func (m *link) inSlot(slots chan struct{}, do func()) {
	select {
	case slots <- struct{}{}:
	case <-m.ctx.Done():
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ctx.Err() != nil {
		return
	}
	m.wg.Go(func() {
		defer func() { <-slots }()
		do()
	})
}

// answer answers a question.
func (m *link) answer(q *nats.Msg, answer Answer) {
	r := reply{Member: m.o.Name}
	err := m.try(m.ctx, "answering "+q.Subject, func(ctx context.Context) (err error) {
		ctx, cancel := context.WithTimeout(ctx, answerTime)
		defer cancel()
		r.Answer, err = answer(ctx, q.Data)
		if err == nil && len(r.Answer) > maxAnswer {
			err = fmt.Errorf("the answer has %d bytes, more than %d: ask for less", len(r.Answer), maxAnswer)
		}
		return err
	})
	if err != nil {
		r.Answer, r.Error = nil, shortened(err.Error())
	}
	text, err := json.Marshal(r)
	if err == nil {
		err = q.Respond(text)
	}
	if err != nil {
		m.log.Debug("a question of the fleet is not answered", "error", err)
	}
}

// Replies are the answers to a question.
type Replies struct {
	Answers map[string][]byte // by member
	Errors  map[string]error  // of members that could not answer
	Missing []string          // members that did not answer, sorted

	bytes int // of the answers
}

// Ask asks all members, also this one, and waits until they have answered or ctx ends. If members
// are named it waits for these only.
func (m *Member) Ask(ctx context.Context, subject string, question []byte, only ...string) (*Replies, error) {
	if len(question) > maxQuestion {
		return nil, fmt.Errorf("the question has %d bytes, more than %d", len(question), maxQuestion)
	}
	if err := m.onlyReads(ctx); err != nil {
		return nil, fmt.Errorf("%w, not to ask the other members", err)
	}
	r := &Replies{Answers: map[string][]byte{}, Errors: map[string]error{}}
	waiting := map[string]bool{}
	for _, name := range only {
		waiting[name] = true
	}
	if len(only) == 0 {
		members, err := m.Members(ctx)
		if err != nil {
			return nil, err
		}
		for _, p := range members {
			waiting[p.Name] = true
		}
	}
	inbox := m.nc.NewInbox()
	sub, err := m.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, m.offline(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := m.nc.PublishRequest(askSubject+subject, inbox, question); err != nil {
		return nil, m.offline(err)
	}
	for len(waiting) > 0 {
		msg, err := sub.NextMsgWithContext(ctx)
		if errors.Is(err, nats.ErrNoResponders) {
			break
		}
		if err != nil {
			break // the time is over
		}
		r.add(msg.Data, waiting)
	}
	for name := range waiting {
		r.Missing = append(r.Missing, name)
	}
	slices.SortFunc(r.Missing, strings.Compare)
	return r, nil
}

// add adds a reply of a member from whom one is wanted.
func (r *Replies) add(data []byte, waiting map[string]bool) {
	var answer reply
	if len(data) > 2*maxAnswer || json.Unmarshal(data, &answer) != nil || !waiting[answer.Member] {
		return
	}
	delete(waiting, answer.Member)
	if r.bytes += len(answer.Answer); r.bytes > maxAnswers { // whoever has the credentials can be ten thousand members
		answer.Error = "the members have answered too much already"
	}
	if answer.Error != "" {
		r.Errors[answer.Member] = errors.New(shortened(answer.Error))
		return
	}
	r.Answers[answer.Member] = answer.Answer
}
