package rhsbl

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"

	"spamgate/blocklist"
	"spamgate/blocklist/judge"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// Record is the answer to the question for a name.
type Record struct {
	Name string `json:"name"`
	A    string `json:"a,omitempty"` // "" if the name is not listed
	TXT  string `json:"txt,omitempty"`
}

// Action returns the action that A stands for, Accept if the name is not listed.
func (r Record) Action() verdict.Action {
	for a := verdict.Tag; a < verdict.Monitor; a++ {
		if r.A == address(a.Code()).String() {
			return a
		}
	}
	return verdict.Accept
}

// Strictest returns the strictest action of the records about one sender. It is Accept if its
// address is allowed: that counts for a program that asks both zones.
func Strictest(records []Record) (worst verdict.Action) {
	for _, r := range records {
		if r.A == address(allowed).String() {
			return verdict.Accept
		}
		worst = max(worst, r.Action())
	}
	return worst
}

// Lookup returns what a server with some settings answers about a sender from a Set: in the
// zone of domains to its domain, in the zone of hashes to the SHA-1 of its address. There is
// no question about the null sender, and none about an address literal in the zone of
// domains.
func Lookup(set *blocklist.Set, settings Settings, address string) ([]Record, error) {
	a, err := sender.Parse(address)
	if err != nil || a.IsNull() {
		return nil, err
	}
	st := &state{Settings: settings, checker: judge.Checker{Store: fixed{set}, Lists: settings.Lists}, message: &verdict.Message{Door: protocol}}
	var all []Record
	if domain := a.Domain(); settings.Zone != "" && !a.IsLiteral() {
		v, err := st.judge(verdict.ReadDomain, "-@"+domain)
		if err != nil {
			return nil, fmt.Errorf("domain %s: %w", domain, err)
		}
		all = append(all, st.found(v).record(domain+"."+settings.Zone))
	}
	if settings.HashedZone != "" {
		f, err := st.lookupAddress(set, a.String())
		if err != nil {
			return nil, fmt.Errorf("address %s: %w", a, err)
		}
		sum := sha1.Sum([]byte(a.String()))
		all = append(all, f.record(hex.EncodeToString(sum[:])+"."+settings.HashedZone))
	}
	return all, nil
}

// lookupAddress returns what there is under the hash of an address: nothing, unless a list
// that is served has an entry of exactly that address.
func (st *state) lookupAddress(set *blocklist.Set, address string) (found, error) {
	for _, l := range set.Stats().Lists {
		if !st.serves(&l) {
			continue
		}
		seg, key, _, ok := set.Index(l.Name)
		if !ok {
			continue
		}
		_, held, err := seg.Lookup(key.Hash([]byte(address)), []byte(address))
		if err != nil {
			return found{}, err
		}
		if held {
			v, err := st.judge(verdict.ReadAddress, address)
			return st.foundAddress(v), err
		}
	}
	return found{}, nil
}

// record returns what is found under a name.
func (f found) record(name string) Record {
	if f.code == 0 {
		return Record{Name: name}
	}
	return Record{name, address(f.code).String(), f.text}
}

// fixed is a Store whose Set does not change.
type fixed struct{ set *blocklist.Set }

func (f fixed) Set() *blocklist.Set { return f.set }

func (f fixed) Await(ctx context.Context, _ uint64) (*blocklist.Set, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
