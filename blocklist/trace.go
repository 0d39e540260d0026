package blocklist

import (
	"slices"
	"time"

	"spamgate/blocklist/bloom"
	"spamgate/blocklist/segment"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// Trace is a lookup with all its steps.
type Trace struct {
	Generation uint64        `json:"generation"`
	Stage      verdict.Stage `json:"stage"`
	Address    string        `json:"address"` // in normal form
	Keys       []TracedKey   `json:"keys"`    // most specific first

	// Asked are the questions to other servers, with the answers.
	Asked []Question `json:"asked,omitempty"`

	// Wraps is how a forwarder wrapped another sender into the address: "srs0", see
	// [sender.Unwrap]. It is "" if none is judged.
	Wraps string `json:"wraps,omitempty"`

	// Verdict is the verdict on the address alone, with all proofs pending.
	Verdict verdict.Verdict `json:"-"`
}

// TracedKey is a key under which a list may hold the sender.
type TracedKey struct {
	// For is the key of the recipient, if the key is for lists with entries for
	// recipients.
	For  string `json:"for,omitempty"`
	Key  string `json:"key"`
	Kind string `json:"kind"` // see [sender.Kind]
	Rank int32  `json:"rank"`

	// Skipped says why a lookup does not ask for the key; empty if it does.
	Skipped Skipped `json:"skipped,omitempty"`

	// Filters is what the filter sees of the key. A kind with a filter for each
	// list has one for each, the others have one; while an index is damaged, those
	// that were made of it before are there too. Maybe is the answer of all.
	Filters []TracedFilter `json:"filters"`
	Maybe   bool           `json:"maybe"`

	// FalsePositive says that no list holds the key, although the filter said
	// maybe. Held is what the lists hold under it.
	FalsePositive bool          `json:"false_positive,omitempty"`
	Held          []TracedEntry `json:"held,omitempty"`
}

// TracedFilter is one filter's view of a key.
type TracedFilter struct {
	List string `json:"list,omitempty"` // empty: the filter of all lists
	bloom.Explanation
}

// TracedEntry is a list's entry for a key.
type TracedEntry struct {
	verdict.Match
	Exception bool      `json:"exception,omitempty"`
	Until     time.Time `json:"until,omitzero"`
	Effect    Effect    `json:"effect"`
}

// Skipped says why a lookup skips a key.
type Skipped string

const (
	NoSuchKind Skipped = "kind"     // no list that counts has an entry of its kind
	AllSettled Skipped = "answered" // each list has a more specific entry
)

// Effect says what an entry does in the verdict.
type Effect string

const (
	IsMatch     Effect = "match"         // it is its list's match
	IsException Effect = "exception"     // it cancels what its list holds from here on
	IsExpired   Effect = "expired"       // it has expired
	NotCounted  Effect = "not counted"   // its list does not count at the stage, or in the View
	LessThan    Effect = "less specific" // its list has a more specific entry
)

// Trace looks a sender up as Find does, and returns every step with the result. It is not
// counted.
func (v *View) Trace(stage verdict.Stage, a sender.Address, o FindOptions) (Trace, Found, error) {
	if err := stage.Validate(); err != nil {
		return Trace{}, Found{}, err
	}
	t := Trace{Generation: v.set.generation, Stage: stage, Address: a.String()}
	var f lookupState
	for _, recipient := range append([]string{""}, o.For...) {
		walk := a.Walk(nil)
		for key, ok := walk.Next(); ok; key, ok = walk.Next() {
			k, err := v.traceKey(&f, stage, recipient, key)
			if err != nil {
				return Trace{}, Found{}, err
			}
			t.Keys = append(t.Keys, k)
		}
	}
	if o.Answer != nil {
		if t.Asked = v.questions(&f, stage, a); t.Asked != nil {
			o.Answer(t.Asked)
			v.settleAnswers(&f, stage, a, t.Asked)
		}
	}
	found := v.set.found(stage, &f)
	t.Verdict = Decide([]Found{found}, nil)
	return t, found, nil
}

// traceKey returns the step of one key, for a recipient if it is not "".
func (v *View) traceKey(f *lookupState, stage verdict.Stage, recipient string, key sender.Key) (TracedKey, error) {
	s := v.set
	k := TracedKey{For: recipient, Key: string(key.Text), Kind: key.Kind.String(), Rank: key.Rank}
	kinds, complete := v.kinds[stage], f.complete()
	if recipient != "" {
		kinds, complete = v.forKinds[stage], v.settledFor(f, stage)
		key.Text = segment.AppendFor(nil, recipient, key.Text)
	}
	switch {
	case !kinds.Has(key.Kind):
		k.Skipped = NoSuchKind
	case complete:
		k.Skipped = AllSettled
	}
	hash := s.key.Hash(key.Text)
	k.Filters = s.explain(hash, key.Text)
	for _, e := range k.Filters {
		k.Maybe = k.Maybe || e.Maybe
	}
	k.Maybe = k.Maybe || v.adds(key.Text)
	if k.Skipped != "" || !k.Maybe {
		return k, nil
	}
	if !s.confirm {
		_, err := v.confirmKey(f, stage, key)
		k.Held = []TracedEntry{{Match: f.lists[0].match, Effect: IsMatch}}
		return k, err
	}
	now := time.Now()
	for i := range s.lists {
		held, ok, err := v.held(i, stage, hash, key)
		if err != nil {
			return k, err
		}
		if !ok {
			continue
		}
		held.Effect = v.effect(f, stage, i, held, now)
		k.Held = append(k.Held, held)
	}
	k.FalsePositive = len(k.Held) == 0
	return k, nil
}

// effect returns what a list's entry does, after the entries of more specific keys.
func (v *View) effect(f *lookupState, stage verdict.Stage, list int, e TracedEntry, now time.Time) Effect {
	switch {
	case !e.Until.IsZero() && !e.Until.After(now):
		return IsExpired
	case !v.counts(list, stage):
		return NotCounted
	}
	what := listMatch{exception: e.Exception}
	if !e.Exception {
		what.match = e.Match
	}
	first := f.lists == nil || !f.lists[list].settled
	f.settle(v, stage, list, what)
	switch {
	case !first:
		return LessThan
	case e.Exception:
		return IsException
	}
	return IsMatch
}

// explain returns what the filter sees of a key.
func (s *Set) explain(hash uint64, key []byte) []TracedFilter {
	filters := s.filter.explain(s.lists, hash, key)
	if s.filter.old != nil {
		filters = append(filters, s.filter.old.explain(s.lists, hash, key)...)
	}
	return filters
}

// explain returns what the filter itself, without an older one, sees of a key. The lists
// are those of the Set.
func (f *setFilter) explain(lists []setList, hash uint64, key []byte) []TracedFilter {
	switch {
	case f.bitmaps != nil:
		return []TracedFilter{{Explanation: f.bitmaps.Explain(hash, key)}}
	case f.counting != nil:
		return []TracedFilter{{Explanation: f.counting.Filter().Explain(key)}}
	}
	var filters []TracedFilter
	for i := range lists {
		if v := lists[i].index; v.keys() > 0 { // the others have none
			if part := slices.Index(f.made, v.segment.Digest()); part >= 0 {
				filters = append(filters, TracedFilter{lists[i].Name, f.fuse[part].Explain(hash)})
			}
		}
	}
	return filters
}

// held returns what a list holds under a key.
func (v *View) held(list int, stage verdict.Stage, hash uint64, key sender.Key) (TracedEntry, bool, error) {
	l := &v.set.lists[list]
	e, ok, err := v.record(list, hash, key.Text)
	if !ok || err != nil {
		return TracedEntry{}, false, err
	}
	t := TracedEntry{Match: l.match(&e, stage, key.Rank), Exception: e.Exception}
	if e.Until != 0 {
		t.Until = time.Unix(e.Until, 0)
	}
	return t, true, nil
}
