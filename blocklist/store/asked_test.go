package store

import (
	"errors"
	"path/filepath"
	"testing"

	"spamgate/blocklist"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// TestListInDNS: a list may become one that is asked, and be read again later. It has no
// versions, and protected names and public suffixes are not asked.
func TestListInDNS(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "blocked.txt")
	write(t, file, "bad.example\n")
	read := List{Name: "list", Paths: []string{file}, Action: verdict.Reject}
	asked := List{Name: "list", Zone: "dbl.example.org", Action: verdict.Reject}
	config := func(l List) Config {
		return Config{Lists: []List{l}, StateDir: filepath.Join(dir, "state"), History: 2, Probes: -1, Protect: []string{"own.example"}}
	}
	s, err := Open(t.Context(), config(read))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	questions := func(address string) int {
		a, err := sender.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		q, err := s.Set().Only(nil).Questions(verdict.Envelope, a)
		if err != nil {
			t.Fatal(err)
		}
		return len(q)
	}
	if questions("a@new.example") != 0 {
		t.Error("a list from a file is asked")
	}
	generation := s.Set().Generation()
	if err := s.Reload(t.Context(), config(asked)); err != nil {
		t.Fatal(err)
	}
	if err := s.Rescan(t.Context()); err != nil || s.Set().Generation() != generation+1 {
		t.Errorf("generation %d, %v", s.Set().Generation(), err)
	}
	for address, want := range map[string]int{"a@bad.example": 1, "a@own.example": 0, "a@sub.own.example": 0, "a@co.uk": 0, "a@example.co.uk": 1} {
		if n := questions(address); n != want {
			t.Errorf("%s: %d questions, want %d", address, n, want)
		}
	}
	l := s.Set().Stats().Lists[0]
	if l.Zone != "dbl.example.org" || l.Entries != 0 || l.Err != nil {
		t.Errorf("%+v", l)
	}
	if _, err := s.Pin(t.Context(), "list", blocklist.Pin{}); err == nil {
		t.Error("a list in DNS can be pinned")
	}
	if err := s.AcceptContent("list", "00"); !errors.Is(err, ErrAsked) {
		t.Errorf("accepting: %v", err)
	}
	if err := s.Reload(t.Context(), config(read)); err != nil {
		t.Fatal(err)
	}
	if questions("a@new.example") != 0 || s.Set().Stats().Lists[0].Entries != 1 {
		t.Errorf("%+v", s.Set().Stats().Lists[0])
	}
	for _, wrong := range []Config{
		config(List{Name: "list", Zone: "dbl.example.org", Paths: []string{file}, Action: verdict.Reject}),
		config(List{Name: "list", Zone: "dbl.example.org", Type: blocklist.Allow}),
		{Lists: []List{asked}, FilterOnly: true},
	} {
		if wrong.Validate() == nil {
			t.Errorf("%+v is valid", wrong.Lists[0])
		}
	}
}
