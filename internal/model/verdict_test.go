package model

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"spamgate/blocklist"
	"spamgate/blocklist/judge"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
)

// messagesPerWorld is how many messages there are for each configuration.
const messagesPerWorld = 40

var seed = flag.Uint64("model.seed", 1, "the seed of TestModel")

// cases returns the number of messages of a test.
func cases(t *testing.T) int {
	t.Helper()
	if text := os.Getenv("SPAMGATE_MODEL_CASES"); text != "" {
		n, err := strconv.Atoi(text)
		must(t, err)
		return n
	}
	if testing.Short() {
		return 400
	}
	return 2000
}

// TestVerdicts compares the verdicts on single senders with the model: what the lists say now,
// and what they say if the pending proofs hold. It finds where a difference of TestModel is.
func TestVerdicts(t *testing.T) {
	g := &gate{dir: t.TempDir(), proofs: &proofs{}}
	for n := range cases(t) / messagesPerWorld {
		gen := &generator{Rand: rand.New(rand.NewPCG(*seed+uint64(n), 1))}
		w := gen.world()
		lists, _, err := store.Build(context.Background(), g.config(t, w))
		must(t, err)
		checker := g.checker(w, lists)
		for range messagesPerWorld {
			m := gen.message()
			g.proofs.about(m, nil)
			for _, rcpt := range m.rcpts {
				if diff := judged(t, w, checker, m, rcpt); diff != "" {
					t.Fatalf("-model.seed=%d, for %s: %s\n%s\n%s", *seed+uint64(n), rcpt, diff, w, m)
				}
			}
		}
	}
}

// judged judges each sender of a message in each phase, for one recipient.
func judged(t *testing.T, w *world, checker judge.Checker, m *message, rcpt string) string {
	j := checker.Judge().(verdict.RecipientJudge)
	keys, err := j.KeysOf(verdict.ParseRecipient(rcpt))
	must(t, err)
	r := w.recipient(rcpt)
	facts := verdict.Message{ReversePath: m.from.written}
	for current := atRcpt; current <= atBody; current++ {
		m.known(&facts, current)
		ask := func(a address, header bool) string {
			q := verdict.Query{Stage: verdict.Envelope, Address: a.written, For: verdict.For{Lists: r.rule.lists, Keys: keys}}
			if header {
				q.Stage = verdict.Header
			}
			got, err := j.Judge(context.Background(), &facts, q)
			must(t, err)
			today, proved := (&question{w, m, a, header, rcpt, r.rule}).answer(current)
			if w.monitor { // the rest is for the log
				if got.Action != verdict.Accept {
					return fmt.Sprintf("%s <%s> in phase %s: got %s although all lists monitor", q.Stage, a.written, current, got.Action)
				}
				return ""
			}
			if got, want := verdictText(got, header), answersText(today, proved); got != want {
				return fmt.Sprintf("%s <%s> in phase %s: got %s, want %s", q.Stage, a.written, current, got, want)
			}
			return ""
		}
		diff := ask(m.from, false)
		for _, f := range m.fields {
			for _, a := range f.addresses {
				if diff == "" && current != atRcpt {
					diff = ask(a, true)
				}
			}
		}
		if diff != "" {
			return diff
		}
	}
	return ""
}

// known sets what is known of a message.
func (m *message) known(facts *verdict.Message, current phase) {
	facts.HeaderKnown, facts.BodyKnown = current >= atHeader, current == atBody
	facts.FromFields, facts.Signatures = 0, nil
	if current == atRcpt {
		return
	}
	for _, f := range m.fields {
		if f.name == "From" {
			facts.FromFields++
		}
	}
	for _, s := range m.signatures[:min(verdict.MaxSignatures, len(m.signatures))] {
		state := verdict.ProofPending
		if current == atBody {
			state = states[s.fact]
		}
		facts.Signatures = append(facts.Signatures, verdict.Signature{Domain: s.domain, State: state})
	}
}

// verdictText writes what the model says, too, of a verdict.
func verdictText(v verdict.Verdict, header bool) string {
	text := func(v verdict.Verdict) string {
		a := answer{clears: v.ClearsMessage && !header, mayClear: v.MayClear && !header} // which only the reverse-path can
		a.action = action(slices.Index(actionNames, v.Action.String()))
		if a.action != accept {
			a.list, a.sender = v.Match.List, v.Match.Sender
		}
		return a.String()
	}
	if v.Pending {
		return text(v) + ", proved " + text(*v.Proved)
	}
	return text(v)
}

func answersText(today, proved answer) string {
	if today.consequence() != proved.consequence() {
		return today.String() + ", proved " + proved.String()
	}
	return today.String()
}

func (a answer) String() string {
	words := []string{a.action.String(), a.list, a.sender}
	if a.clears {
		words = append(words, "clears")
	}
	if a.mayClear {
		words = append(words, "may clear")
	}
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}

// checker returns what judges by the lists of a world.
func (g *gate) checker(w *world, lists *blocklist.Set) judge.Checker {
	c := judge.Checker{Store: served{lists}, Prover: func() judge.Prover { return g.proofs }}
	if w.srs {
		c.Unwrap |= sender.SRS
	}
	if w.batv {
		c.Unwrap |= sender.BATV
	}
	return c
}
