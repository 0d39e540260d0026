package check

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/blocklist"
	"spamgate/blocklist/judge"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
	"spamgate/internal/config"
	"spamgate/internal/setup"
)

// damagedEntries are so many that a start does not read the index of the list.
const damagedEntries = 40_000

// damagedSet has the lists of a gate whose index was damaged behind its back, and which
// cannot read the list again.
func damagedSet(t *testing.T) (*config.Config, *blocklist.Set) {
	t.Helper()
	dir := t.TempDir()
	path, list := filepath.Join(dir, "config.toml"), filepath.Join(dir, "blocked.txt")
	var text bytes.Buffer
	for i := range damagedEntries {
		fmt.Fprintf(&text, "host%d.example\n", i)
	}
	err := errors.Join(
		os.WriteFile(path, []byte("[[list]]\nname = \"blocked\"\npath = \"blocked.txt\"\n"), 0o600),
		os.WriteFile(list, text.Bytes(), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := setup.BlocklistConfig(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := store.Open(t.Context(), lists) // makes index and bits
	if err == nil {
		err = opened.Close()
	}
	if err == nil {
		opened, err = store.Open(t.Context(), lists) // maps the index, unread
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	set := opened.Set()
	if err := os.Remove(list); err != nil {
		t.Fatal(err)
	}
	damage(t, filepath.Join(c.State.Dir, store.ListName("blocked"), "current.seg"))
	return c, set
}

// damage changes the middle of a file in place.
func damage(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err == nil {
		_, err = f.WriteAt(bytes.Repeat([]byte{0x5a}, int(info.Size()/2)), info.Size()/4)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedList: a lookup that fails is told apart from an address that is none,
// by the gate's judge and by check, and never passes for an answer.
func TestDamagedList(t *testing.T) {
	c, set := damagedSet(t)
	j := judge.New(set.Only(nil))
	var input strings.Builder
	failed := 0
	for i := range 1000 {
		address := fmt.Sprintf("u@host%d.example", i)
		fmt.Fprintln(&input, address)
		v, err := j.Judge(t.Context(), nil, verdict.Query{Stage: verdict.Envelope, Address: address})
		switch {
		case err == nil && v.Action != verdict.Reject:
			t.Errorf("%s: %+v", address, v)
		case err != nil && !errors.Is(err, verdict.ErrNoAnswer):
			t.Errorf("%s: %v", address, err)
		case err != nil:
			failed++
		}
	}
	if failed == 0 {
		t.Fatal("nothing is damaged")
	}
	if _, err := j.Judge(t.Context(), nil, verdict.Query{Stage: verdict.Envelope, Address: "no address"}); err == nil || errors.Is(err, verdict.ErrNoAnswer) {
		t.Errorf("no address: %v", err)
	}
	if v, err := j.Judge(t.Context(), nil, verdict.Query{Stage: verdict.Envelope, Address: "u@clean.example"}); err != nil || v.Action != verdict.Accept {
		t.Errorf("what the filter rules out: %+v, %v", v, err)
	}
	var out bytes.Buffer
	_, err := stream(t.Context(), linesIn(t, c, set), strings.NewReader(input.String()), &out)
	if !errors.Is(err, verdict.ErrNoAnswer) || !strings.Contains(err.Error(), "standard input, line ") {
		t.Errorf("the whole: %v", err)
	}
	if n := strings.Count("\n"+out.String(), "\nerror\t"); n != failed {
		t.Errorf("%d lines with an error, want %d", n, failed)
	}
}
