package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

const (
	shaA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	shaB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	shaC = "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
)

// valid returns a version that parseVersion takes.
func valid() *Version {
	return &Version{
		Format: 1, List: "a.b", Kind: Managed, Sequence: 7, SHA256: shaC, Size: 10, Base: shaB,
		Snapshot: shaC, Edit: []byte("x"), Whole: shaA, Since: 9,
		Author: "ann", Member: "mx1", What: "added", Why: "spam", Time: time.Unix(1e9, 0).UTC(), Accepted: true,
	}
}

// TestParseVersion changes one thing after the other.
func TestParseVersion(t *testing.T) {
	value, err := valid().encode()
	if err != nil {
		t.Fatal(err)
	}
	v, err := parseVersion(value, "a.b", Managed)
	if err != nil || v.String() != "sequence 7, cccccccccccc, 10 bytes" {
		t.Fatalf("got %v, %v", v, err)
	}
	if again, err := v.encode(); err != nil || !bytes.Equal(again, value) {
		t.Errorf("it was written as %s, and then as %s, %v", value, again, err)
	}
	for name, change := range map[string]func(*Version){
		"format":          func(v *Version) { v.Format = 0 },
		"list":            func(v *Version) { v.List = "b.a" },
		"kind":            func(v *Version) { v.Kind = Fetched },
		"no sequence":     func(v *Version) { v.Sequence = 0 },
		"sequence":        func(v *Version) { v.Sequence = maxSequence + 1 },
		"size":            func(v *Version) { v.Size = -1 },
		"digest":          func(v *Version) { v.SHA256 = strings.ToUpper(shaC) },
		"short digest":    func(v *Version) { v.Snapshot = "aa" },
		"base":            func(v *Version) { v.Base = "../../etc" },
		"long edit":       func(v *Version) { v.Edit = make([]byte, maxEdit+1) },
		"since":           func(v *Version) { v.Since = -1 },
		"no edit":         func(v *Version) { v.Edit = nil },
		"edit of nothing": func(v *Version) { v.Base = "" },
		"no whole":        func(v *Version) { v.Whole = "" },
		"an edit since 0": func(v *Version) { v.Since = 0 },
		"state":           func(v *Version) { v.Fetch = json.RawMessage(`"` + strings.Repeat("x", maxFetch) + `"`) },
	} {
		v := valid()
		change(v)
		value, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseVersion(value, "a.b", Managed); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := parseVersion([]byte(`{"format":2,"list":[]}`), "a.b", Managed); !errors.Is(err, errNewer) {
		t.Errorf("a newer format: %v", err)
	}
}

// FuzzParseVersion wants parsed versions to be safe to use, and to be read as they are written.
func FuzzParseVersion(f *testing.F) {
	value, err := valid().encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(value)
	f.Add([]byte(`{"format":1,"list":"a.b","kind":"managed"}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		v, err := parseVersion(value, "a.b", Managed)
		if err != nil {
			return
		}
		for _, s := range []string{v.Author, v.Member, v.What, v.Why} {
			if len(s) > maxText+3 || !utf8.ValidString(s) {
				t.Errorf("a text of %d bytes: %q", len(s), s)
			}
		}
		for _, sha := range []string{v.SHA256, v.Whole, v.Base} {
			if name := fullName(sha); strings.ContainsAny(name, "/ \n") || len(name) > 200 {
				t.Errorf("the name %q", name)
			}
		}
		again, err := v.encode()
		if err != nil {
			return // escaping can make it longer than a key may be
		}
		if _, err := parseVersion(again, "a.b", Managed); err != nil {
			t.Errorf("it is not read again: %v", err)
		}
	})
}

// FuzzShared wants parsed values to be bounded.
func FuzzShared(f *testing.F) {
	f.Add([]byte(`{"format":1,"sequence":1,"time":"2026-01-01T00:00:00Z","member":"a","value":{"sum":"x"}}`))
	f.Add([]byte(`{"format":1,"key":"pin.b","sequence":1,"time":"2026-01-01T00:00:00Z","member":"a","value":1}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		s, err := parseShared("pin.a", value)
		if err == nil && (s.Key != "" && s.Key != "pin.a" || s.Sequence < 1 || len(s.Value) > maxShared || s.counts(s)) {
			t.Errorf("got %+v", s)
		}
	})
}

// FuzzKey wants names to be found again in keys, and keys to be valid.
func FuzzKey(f *testing.F) {
	for _, name := range []string{"blocked", "a.b", "ärger", "=2E", "", "a b*>"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		part := escaped(name)
		if got, ok := unescaped(part); !ok || got != name {
			t.Errorf("%q is %q, and that %q, %v", name, part, got, ok)
		}
		if strings.ContainsAny(part, ".*> \t\r\n") {
			t.Errorf("the key %q", part)
		}
		if got, ok := unescaped(name); ok && escaped(got) != name {
			t.Errorf("%q is read as %q", name, got)
		}
	})
}
