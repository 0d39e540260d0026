package logging

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func newRedactor(t *testing.T, mode, dir string) *Redactor {
	t.Helper()
	r, err := NewRedactor(mode, dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRedactor(t *testing.T) {
	dir := t.TempDir()
	// With a fixed key the hashes must not change, so that logs from before and
	// after an update can be compared.
	key := make([]byte, 32)
	for i := range key {
		key[i] = byte(i)
	}
	if err := os.WriteFile(filepath.Join(dir, "key"), key, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ address, domain, hash string }{
		{"", "", ""},
		{"<>", "<>", "<>"},
		{"user@example.com", "*@example.com", "8f90c292df604a56"},
		{"User@Example.COM", "*@Example.COM", "8f90c292df604a56"},
		{"<user@example.com>", "*@example.com", "8f90c292df604a56"},
		{`"a@b"@example.com`, "*@example.com", "e26ca3359575236d"},
		{"user@[192.0.2.1]", "*@[192.0.2.1]", "c59d7b88411471e0"},
		{"postmaster", "*", "bd0c619a9d2ddf02"},
	} {
		for mode, want := range map[string]string{"": c.address, "full": c.address, "domain": c.domain, "hash": c.hash} {
			if got := newRedactor(t, mode, dir).Address(c.address); got != want {
				t.Errorf("%q of %q: got %q, want %q", mode, c.address, got, want)
			}
		}
	}
	if got := new(Redactor).Address("user@example.com"); got != "user@example.com" {
		t.Errorf("zero value: got %q", got)
	}
}

func TestRedactorUnknownMode(t *testing.T) {
	if _, err := NewRedactor("none", t.TempDir()); err == nil || !strings.Contains(err.Error(), "use ") {
		t.Errorf("got %v", err)
	}
}

func TestKeyIsMadeOnceAndKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "state")
	first := newRedactor(t, AddressesHash, dir).Address("user@example.com")
	if again := newRedactor(t, AddressesHash, dir).Address("user@example.com"); again != first {
		t.Errorf("after a restart %s is %s", first, again)
	}
	info, err := os.Stat(filepath.Join(dir, "key"))
	if err != nil || info.Mode() != 0o600 || info.Size() != 32 {
		t.Errorf("key: %v, %v", info, err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("left behind: %v, %v", names, err)
	}
	other := newRedactor(t, AddressesHash, t.TempDir()).Address("user@example.com")
	if other == first {
		t.Error("two keys are the same")
	}
}

// TestKeyRace checks that processes that start at once use the same key.
func TestKeyRace(t *testing.T) {
	dir := t.TempDir()
	keys := make([][]byte, 16)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			var err error
			if keys[i], err = loadKey(dir); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, key := range keys {
		if !bytes.Equal(key, keys[0]) {
			t.Fatalf("%x and %x", key, keys[0])
		}
	}
}

func TestBadKey(t *testing.T) {
	for name, c := range map[string]struct {
		size int
		mode os.FileMode
		want string
	}{
		"short":        {31, 0o600, "31 bytes instead of 32"},
		"empty":        {0, 0o600, "0 bytes instead of 32"},
		"group reads":  {32, 0o640, "chmod 600"},
		"others read":  {32, 0o604, "chmod 600"},
		"owner writes": {32, 0o700, "chmod 600"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "key")
			if err := os.WriteFile(path, make([]byte, c.size), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, c.mode); err != nil {
				t.Fatal(err)
			}
			_, err := NewRedactor(AddressesHash, dir)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("directory", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "key"), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := NewRedactor(AddressesHash, dir); err == nil || !strings.Contains(err.Error(), "not a regular file but a directory") {
			t.Errorf("got %v", err)
		}
	})
}

// TestNewerKey starts with a key that this version does not understand. It stays beside the
// new one.
func TestNewerKey(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	newer := []byte("spamgate key 2\n" + strings.Repeat("x", 64))
	if err := os.WriteFile(path, newer, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := NewRedactor(AddressesHash, dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := NewRedactor(AddressesHash, dir)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := r.Address("a@example.com"), again.Address("a@example.com"); a != b {
		t.Errorf("%s, and %s with the same new key", a, b)
	}
	if aside, err := os.ReadFile(path + ".aside"); err != nil || string(aside) != string(newer) {
		t.Errorf("set aside: %q, %v", aside, err)
	}
}

func ExampleRedactor_Address() {
	r, err := NewRedactor(AddressesDomain, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Address("user@example.com"))
	// Output: *@example.com
}
