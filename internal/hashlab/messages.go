package hashlab

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strconv"

	"spamgate/blocklist/sender"
)

// How many messages are made for a place.
const (
	messageCount     = 5_000
	messageCountFull = 20_000
)

// messages is made-up messages, and which of them can be asked for in each
// split: those of which no candidate key is a member, so that every "maybe" is
// a false positive.
type messages struct {
	candidates [][]byte  // the different keys of all messages
	keys       [][]int32 // of each message: places in candidates, each once
	queries    [][]int32 // of each split: messages
	asked      []uint8   // by message: in how many splits
}

// newMessages makes messages whose domains are those of the place's keys, nil
// where these are no domains or addresses, or have few domains.
//
// A message has a From address at a key's domain, or the key where that is an
// address. The reverse-path is the same (in four of ten messages), an address
// for bounces at that domain or below it (four), or at another key's (two). A
// quarter have a Reply-To at another key's domain. What is looked up is what
// the gate looks up: all candidate keys of every identity.
func newMessages(p *place, count int) *messages {
	random := p.stream("messages")
	w := writer{random: random, numbers: make(map[string]int32)}
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
		x.keys = append(x.keys, w.walk(identities))
	}
	if 2*len(domains) < count {
		return nil
	}
	x.candidates = w.candidates
	x.choose(p)
	return x
}

// choose finds out which messages each split can be asked for.
func (x *messages) choose(p *place) {
	places := make(map[string]int32, len(p.keys))
	for i, key := range p.keys {
		places[string(key)] = int32(i)
	}
	place := make([]int32, len(x.candidates)) // in p.keys, -1 where it is none of them
	for i, key := range x.candidates {
		place[i] = -1
		if at, ok := places[string(key)]; ok {
			place[i] = at
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
			if !anyMember(member, place, keys) {
				queries = append(queries, int32(i))
				x.asked[i]++
			}
		}
		x.queries = append(x.queries, queries)
	}
}

// anyMember reports whether one of the candidates is a member.
func anyMember(member []bool, place, candidates []int32) bool {
	for _, c := range candidates {
		if at := place[c]; at >= 0 && member[at] {
			return true
		}
	}
	return false
}

// ask asks the filter of the i-th split for its messages.
func (x *messages) ask(t *tally, i int, candidates *table, bits bitmap) {
	for _, message := range x.queries[i] {
		for _, key := range x.keys[message] {
			if bits.has(candidates.row(key)) {
				t.hit(i, message)
				break
			}
		}
	}
	t.trials[i] = uint64(len(x.queries[i]))
}

// row is the rate per message, beside what follows from the rate per key.
func (x *messages) row(p *place, s Subject, t *tally, perKey float64) MessageRow {
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
type writer struct {
	random     *rand.Rand
	numbers    map[string]int32 // of candidates
	candidates [][]byte
	buf        []byte
}

// address is the key where that is an address, else one at the key as a domain.
func (w *writer) address(key []byte) (sender.Address, bool) {
	if bytes.IndexByte(key, '@') < 0 {
		key = append(w.person(), key...)
	}
	a, err := sender.Parse(string(key))
	return a, err == nil && bytes.IndexByte(key, '.') >= 0
}

// take adds the address of a key to those of a message.
func (w *writer) take(identities []sender.Address, key []byte) []sender.Address {
	if a, ok := w.address(key); ok {
		identities = append(identities, a)
	}
	return identities
}

// person is a made-up local part with its @; one in ten has a tag.
func (w *writer) person() []byte {
	v := w.random.Uint64N(syllables * syllables * syllables)
	local := appendSyllables(nil, v, 3)
	local = strconv.AppendInt(local, int64(w.random.IntN(1000)), 10)
	if w.random.IntN(10) == 0 {
		local = append(local, "+news"...)
	}
	return append(local, '@')
}

// bounce is an address that bounces go to, at the domain or below it, with the
// message's number in it.
func (w *writer) bounce(domain string) []byte {
	address := strconv.AppendUint([]byte("bounce-"), w.random.Uint64N(1e9), 10)
	address = append(address, [...]string{"@", "@mail.", "@bounce.mail."}[w.random.IntN(3)]...)
	return append(address, domain...)
}

// walk is the numbers of all candidate keys, each once.
func (w *writer) walk(identities []sender.Address) []int32 {
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
