package hashlab

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"spamgate/blocklist/sender"
)

// How many messages are made for an experiment.
const (
	messageCount     = 5_000
	messageCountFull = 20_000
)

// messages is made-up messages, and the queries among them for each split: those
// of which no candidate key is a member, so that every "maybe" is a false
// positive.
type messages struct {
	candidates [][]byte  // the different keys of all messages
	keys       [][]int32 // of each message: numbers of candidates, each once
	queries    [][]int32 // of each split: numbers of messages
	asked      []uint8   // by message: the number of splits of which it is a query
}

// newMessages makes messages with the domains of the experiment's keys. It returns
// nil if the keys are not domains or addresses, or have few domains.
//
// A message has a From address at a key's domain, or the key if that is an
// address. The reverse-path is the same (in four of ten messages), an address
// for bounces at that domain or below it (four), or at another key's (two). A
// quarter have a Reply-To at another key's domain. Like the gate, the laboratory
// looks up all candidate keys of every identity.
func newMessages(p *experiment, count int) *messages {
	random := p.stream("messages")
	w := messageMaker{random: random, numbers: make(map[string]int32)}
	x := &messages{}
	domains := make(map[string]bool)
	for range count {
		from, ok := w.address(p.keys[random.IntN(len(p.keys))])
		if !ok {
			continue
		}
		domains[from.Domain()] = true
		identities := []sender.Address{from}
		switch v := random.IntN(10); {
		case v < 4:
		case v < 8:
			identities = w.take(identities, w.bounce(from.Domain()))
		default:
			identities = w.take(identities, p.keys[random.IntN(len(p.keys))])
		}
		if random.IntN(4) == 0 {
			identities = w.take(identities, p.keys[random.IntN(len(p.keys))])
		}
		x.keys = append(x.keys, w.candidateKeys(identities))
	}
	if 2*len(domains) < count {
		return nil
	}
	x.candidates = w.candidates
	x.choose(p)
	return x
}

// choose selects the queries of each split.
func (x *messages) choose(p *experiment) {
	numbers := make(map[string]int32, len(p.keys))
	for i, key := range p.keys {
		numbers[string(key)] = int32(i)
	}
	number := make([]int32, len(x.candidates)) // in p.keys, or -1
	for i, key := range x.candidates {
		number[i] = -1
		if n, ok := numbers[string(key)]; ok {
			number[i] = n
		}
	}
	x.asked = make([]uint8, len(x.keys))
	member := make([]bool, len(p.keys))
	for _, s := range p.splits {
		clear(member)
		for _, step := range s.steps {
			for _, key := range step {
				member[key] = true
			}
		}
		var queries []int32
		for i, keys := range x.keys {
			if !slices.ContainsFunc(keys, func(c int32) bool { return number[c] >= 0 && member[number[c]] }) {
				queries = append(queries, int32(i))
				x.asked[i]++
			}
		}
		x.queries = append(x.queries, queries)
	}
}

// ask looks the queries of the i-th split up in its filter. The rows of candidates
// are those from first on.
func (x *messages) ask(t *tally, i int, all *table, first int, bits bitmap) {
	for _, message := range x.queries[i] {
		for _, key := range x.keys[message] {
			if bits.has(all.row(int32(first) + key)) {
				t.hit(i, message)
				break
			}
		}
	}
	t.trials[i] = uint64(len(x.queries[i]))
}

// row returns the rate per message, and the one that follows from the rate per key.
func (x *messages) row(p *experiment, s Subject, t *tally, perKey float64) MessageRow {
	row := MessageRow{Corpus: p.corpus, Subject: s, M: p.m, K: p.k, N: p.loads[p.full].n, Filters: len(p.splits), Rate: t.rate(x.asked)}
	row.Hits, row.Messages = t.total()
	for i, times := range x.asked {
		keys := float64(len(x.keys[i]))
		row.KeysAMail += float64(times) * keys
		row.FromPerKey -= float64(times) * math.Expm1(keys*math.Log1p(-perKey))
	}
	if row.Messages > 0 {
		row.KeysAMail /= float64(row.Messages)
		row.FromPerKey /= float64(row.Messages)
	}
	return row
}

// writer makes the addresses of messages and numbers their candidate keys.
type messageMaker struct {
	random     *rand.Rand
	numbers    map[string]int32 // of candidates
	candidates [][]byte
	buf        []byte
}

// address returns the key if that is an address, else one at the key as a domain.
func (w *messageMaker) address(key []byte) (sender.Address, bool) {
	if bytes.IndexByte(key, '@') < 0 {
		key = append(w.person(), key...)
	}
	a, err := sender.Parse(string(key))
	return a, err == nil && bytes.IndexByte(key, '.') >= 0
}

// take adds the address of a key to those of a message.
func (w *messageMaker) take(identities []sender.Address, key []byte) []sender.Address {
	if a, ok := w.address(key); ok {
		identities = append(identities, a)
	}
	return identities
}

// person returns a made-up local part with its @; one in ten has a tag.
func (w *messageMaker) person() []byte {
	v := w.random.Uint64N(syllables * syllables * syllables)
	local := appendSyllables(nil, v, 3)
	local = strconv.AppendInt(local, int64(w.random.IntN(1000)), 10)
	if w.random.IntN(10) == 0 {
		local = append(local, "+news"...)
	}
	return append(local, '@')
}

// bounce returns an address for bounces, at the domain or below it, with the
// message's number in it.
func (w *messageMaker) bounce(domain string) []byte {
	address := strconv.AppendUint([]byte("bounce-"), w.random.Uint64N(1e9), 10)
	address = append(address, [...]string{"@", "@mail.", "@bounce.mail."}[w.random.IntN(3)]...)
	return append(address, domain...)
}

// candidateKeys returns the numbers of all candidate keys, each once.
func (w *messageMaker) candidateKeys(identities []sender.Address) []int32 {
	var keys []int32
	seen := make(map[int32]bool)
	for _, a := range identities {
		walk := a.Walk(w.buf)
		for {
			key, ok := walk.Next()
			if !ok {
				break
			}
			number, ok := w.numbers[string(key.Text)]
			if !ok {
				number = int32(len(w.candidates))
				w.numbers[string(key.Text)] = number
				w.candidates = append(w.candidates, bytes.Clone(key.Text))
			}
			if !seen[number] {
				seen[number] = true
				keys = append(keys, number)
			}
		}
	}
	return keys
}
