package gate

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"spamgate/blocklist/hits"
	"spamgate/blocklist/segment"
	"spamgate/internal/admin"
	"spamgate/internal/fleet"
	"spamgate/internal/report"
	"spamgate/internal/setup"
	"spamgate/internal/text"
)

// This file shares which entries have matched, for lists unused. Each gate hashes entries with a
// key of its own. What it tells others is part of the SHA-256 of an entry.

// askHits asks a gate which entries of a list have matched: a hitsAnswer. The question is a
// hitsQuestion.
const askHits = "hits"

type hitsQuestion struct {
	List  string `json:"list"`
	Since string `json:"since"` // a day, as in admin.UnusedHeader

	// ID and From ask the gate To for the rest of an answer.
	To   string `json:"to,omitempty"`
	ID   string `json:"id,omitempty"`
	From int    `json:"from,omitempty"`
}

type hitsAnswer struct {
	ID     string `json:"id,omitempty"`
	Known  string `json:"known,omitempty"`  // since when all matches are known; empty: it does not share the list
	Total  int    `json:"total,omitempty"`  // of all hashes
	Hashes []byte `json:"hashes,omitempty"` // from hitsQuestion.From on, 8 bytes each
}

const (
	hashBytes   = 8
	maxHitsPage = 40_000    // hashes in an answer
	maxHits     = 2_000_000 // of a gate
	maxAllHits  = 4_000_000 // of all gates together: 32 MiB

	maxHitsKept = 8 // answers of several pages
	hitsKept    = time.Minute
)

// hashOfEntry returns what gates call an entry (segment.Entry.Indexed).
func hashOfEntry(indexed string) uint64 {
	sum := sha256.Sum256([]byte(indexed))
	return binary.BigEndian.Uint64(sum[:])
}

// matched are the hashes of entries that have matched, and since when that is known.
type matched struct {
	hashes []uint64
	known  hits.Day
	until  time.Time // it is kept until then
}

// keptHits are long answers whose pages are asked for one after the other.
type keptHits struct {
	mu   sync.Mutex
	byID map[string]*matched
}

// add keeps an answer, and returns its name.
func (k *keptHits) add(m *matched, now time.Time) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.byID, func(_ string, m *matched) bool { return now.After(m.until) })
	for len(k.byID) >= maxHitsKept {
		oldest := slices.MinFunc(slices.Collect(maps.Keys(k.byID)), func(a, b string) int { return k.byID[a].until.Compare(k.byID[b].until) })
		delete(k.byID, oldest)
	}
	id := rand.Text()
	m.until = now.Add(hitsKept)
	if k.byID == nil {
		k.byID = map[string]*matched{}
	}
	k.byID[id] = m
	return id
}

func (k *keptHits) get(id string) *matched {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.byID[id]
}

// fleetHits tells and asks which entries have matched.
type fleetHits struct {
	*fleetPart
	kept keptHits
}

// answer answers askHits.
func (f *fleetHits) answer(ctx context.Context, question []byte) ([]byte, error) {
	var q hitsQuestion
	if err := json.Unmarshal(question, &q); err != nil {
		return nil, errors.New("the question is invalid")
	}
	if q.ID != "" {
		return f.page(&q)
	}
	c := f.config()
	if i := setup.ListIndex(c, q.List); i < 0 || !c.Lists[i].Fleet {
		return json.Marshal(hitsAnswer{})
	}
	since, err := time.Parse(admin.Day, q.Since)
	if err != nil {
		return nil, errors.New("the question has no day")
	}
	if err := report.CheckConfirms(c, q.List); err != nil {
		return nil, err
	}
	m, err := f.matched(ctx, q.List, hits.DayOf(since))
	if err != nil {
		return nil, err
	}
	a := m.page(0)
	if len(m.hashes) > maxHitsPage {
		a.ID = f.kept.add(m, time.Now())
	}
	return json.Marshal(a)
}

// page answers a question for the rest of an answer.
func (f *fleetHits) page(q *hitsQuestion) ([]byte, error) {
	if q.To != f.config().Fleet.Name {
		return json.Marshal(hitsAnswer{})
	}
	m := f.kept.get(q.ID)
	if m == nil || q.From < 0 || q.From > len(m.hashes) {
		return nil, errors.New("the answer is gone: ask anew")
	}
	return json.Marshal(m.page(q.From))
}

// page returns the hashes from one on.
func (m *matched) page(from int) hitsAnswer {
	a := hitsAnswer{Known: m.known.String(), Total: len(m.hashes)}
	for _, hash := range m.hashes[from:min(len(m.hashes), from+maxHitsPage)] {
		a.Hashes = binary.BigEndian.AppendUint64(a.Hashes, hash)
	}
	return a
}

// matched returns the entries of a list that have matched here since a day.
func (f *fleetHits) matched(ctx context.Context, list string, since hits.Day) (*matched, error) {
	known := f.hits.Snapshot(list)
	m := &matched{known: known.Known()}
	index, key, _, ok := f.store.Set().Index(list)
	if !ok || known.Len() == 0 {
		return m, nil
	}
	n := 0
	err := index.Records(func(r segment.Record) bool {
		if known.Last(key.Hash([]byte(r.Indexed()))) >= since {
			m.hashes = append(m.hashes, hashOfEntry(r.Indexed()))
		}
		n++
		return n%4096 != 0 || ctx.Err() == nil
	})
	if ctx.Err() != nil {
		err = errors.New("it takes too long")
	}
	return m, err
}

// elsewhere are the matches on other gates.
type elsewhere struct {
	fleet  admin.UnusedFleet
	hashes []uint64 // ascending
}

// has reports whether an entry has matched there.
func (e *elsewhere) has(indexed string) bool {
	_, ok := slices.BinarySearch(e.hashes, hashOfEntry(indexed))
	return ok
}

// hitsTime returns how long a gate may take to look through a list.
func hitsTime(entries int) time.Duration {
	return fleetAnswerTime + time.Duration(entries>>20)*time.Second
}

// stateGate is what a shared value is about that says on which day a gate was last in the fleet:
// see fleet.StateKey. So a gate that is down is known, and not only those that answer.
const stateGate = "gate"

// enrol keeps that value of this gate, until ctx ends.
func (f *fleetHits) enrol(ctx context.Context, m *fleet.Member) {
	key := fleet.StateKey(stateGate, f.config().Fleet.Name)
	for ctx.Err() == nil {
		again := time.Hour
		today, err := json.Marshal(time.Now().UTC().Format(admin.Day))
		if err == nil && string(m.State(key)) != string(today) {
			err = m.SetState(ctx, key, func(json.RawMessage) (json.RawMessage, error) { return today, nil })
		}
		if err != nil { // the status says why
			again = time.Minute
		}
		pause(ctx, again)
	}
}

// roster returns the other gates that are in the fleet, or were since a day.
func (f *fleetHits) roster(ctx context.Context, m *fleet.Member, since time.Time) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, fleetAnswerTime)
	defer cancel()
	members, err := m.Members(ctx)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, p := range members {
		names[p.Name] = true
	}
	for name, value := range m.States(stateGate) {
		var text string
		if json.Unmarshal(value, &text) != nil {
			continue
		}
		if day, err := time.Parse(admin.Day, text); err == nil && !day.Before(since.UTC().Truncate(24*time.Hour)) {
			names[name] = true
		}
	}
	delete(names, f.config().Fleet.Name)
	return slices.Sorted(maps.Keys(names)), nil
}

// elsewhere asks the other gates which entries of a list, which has so many here, have
// matched since a day.
func (f *fleetHits) elsewhere(ctx context.Context, list string, since time.Time, entries int) (*elsewhere, error) {
	m, err := f.connected(ctx)
	if err != nil {
		return nil, err
	}
	names, err := f.roster(ctx, m, since)
	if err != nil {
		return nil, err
	}
	a := &asking{f: f.fleetPart, m: m, q: hitsQuestion{List: list, Since: since.UTC().Format(admin.Day)}, time: hitsTime(entries), rest: map[string]*restOfHits{}}
	a.fleet = admin.UnusedFleet{Gates: []string{}, Errors: map[string]string{}, Recent: map[string]string{}}
	if len(names) > 0 {
		err = a.first(ctx, names)
	}
	if err != nil {
		return nil, err
	}
	a.fleet.Gates = append(a.fleet.Gates, f.config().Fleet.Name)
	for len(a.rest) > 0 {
		if err := a.next(ctx); err != nil {
			return nil, err
		}
	}
	slices.Sort(a.fleet.Gates)
	slices.Sort(a.fleet.Missing)
	slices.Sort(a.hashes)
	a.hashes = slices.Compact(a.hashes)
	return &a.elsewhere, nil
}

// asking is the work of fleetHits.elsewhere.
type asking struct {
	f    *fleetPart
	m    *fleet.Member
	q    hitsQuestion
	time time.Duration // for an answer

	rest map[string]*restOfHits // of gates with more to say
	elsewhere
}

// restOfHits is what a gate has still to tell.
type restOfHits struct {
	id          string
	from, total int
}

// ask asks gates a question.
func (a *asking) ask(ctx context.Context, q hitsQuestion, names []string) (*fleet.Replies, error) {
	question, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, a.time)
	defer cancel()
	r, err := a.m.Ask(ctx, askHits, question, names...)
	if err != nil {
		return nil, err
	}
	a.fleet.Missing = append(a.fleet.Missing, r.Missing...)
	for _, name := range r.Missing {
		delete(a.rest, name)
	}
	for name, err := range r.Errors {
		a.fail(name, err)
	}
	return r, nil
}

// fail notes that a gate could not answer.
func (a *asking) fail(name string, err error) {
	delete(a.rest, name)
	a.fleet.Errors[name] = err.Error()
}

// first asks all gates.
func (a *asking) first(ctx context.Context, names []string) error {
	r, err := a.ask(ctx, a.q, names)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(r.Answers)) {
		answer, err := parseHits(r.Answers[name])
		switch {
		case err != nil:
			a.fail(name, err)
			continue
		case answer.Known == "": // it does not share the list
			continue
		case answer.Known > a.q.Since: // days as they are written sort as they come
			a.fleet.Recent[name] = answer.Known
		}
		a.rest[name] = &restOfHits{id: answer.ID, total: answer.Total}
		a.take(name, answer)
	}
	return ctx.Err()
}

// next asks a gate with more to say for its next page.
func (a *asking) next(ctx context.Context) error {
	name := slices.Min(slices.Collect(maps.Keys(a.rest)))
	q := a.q
	q.To, q.ID, q.From = name, a.rest[name].id, a.rest[name].from
	r, err := a.ask(ctx, q, []string{name})
	if err != nil {
		return err
	}
	if answer, ok := r.Answers[name]; ok {
		if page, err := parseHits(answer); err != nil {
			a.fail(name, err)
		} else {
			a.take(name, page)
		}
	}
	return ctx.Err()
}

// take takes a page of a gate's hashes. What it says may be wrong in any way.
func (a *asking) take(name string, page *hitsAnswer) {
	rest, n := a.rest[name], len(page.Hashes)/hashBytes
	switch {
	case page.Total != rest.total || rest.total > maxHits || rest.from+n > rest.total || n == 0 && rest.from < rest.total:
		a.fail(name, errors.New("its answer is invalid"))
		return
	case len(a.hashes)+n > maxAllHits:
		a.fail(name, fmt.Errorf("all gates together have matched more than %s", text.Count(maxAllHits, "entry", "entries")))
		return
	}
	for hashes := page.Hashes; len(hashes) >= hashBytes; hashes = hashes[hashBytes:] {
		a.hashes = append(a.hashes, binary.BigEndian.Uint64(hashes))
	}
	if rest.from += n; rest.from == rest.total {
		delete(a.rest, name)
		a.fleet.Gates = append(a.fleet.Gates, name)
	}
}

// parseHits parses an answer of another gate, of which nothing is trusted.
func parseHits(answer []byte) (*hitsAnswer, error) {
	a := new(hitsAnswer)
	if err := json.Unmarshal(answer, a); err != nil {
		return nil, fmt.Errorf("its answer is invalid: %w", err)
	}
	if a.Known != "" {
		if _, err := time.Parse(admin.Day, a.Known); err != nil {
			return nil, errors.New("its answer has no day")
		}
	}
	if len(a.Hashes)%hashBytes != 0 || len(a.Hashes) > maxHitsPage*hashBytes || len(a.ID) > 100 {
		return nil, errors.New("its answer is invalid")
	}
	return a, nil
}
