package hashes

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/blocklist/bloom"
	"spamgate/hashfamily"
	"spamgate/internal/cli"
	"spamgate/internal/disposable"
)

// writeBitmap writes a bitmap of keys and returns its path.
func writeBitmap(t *testing.T, keys ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bitmap.bin")
	if _, err := runHashes(strings.NewReader(strings.Join(keys, "\n")+"\n"), "bitmap", "--out", path); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestHashesQuery asks for keys that are in a bitmap, for others, and for what a line can be.
func TestHashesQuery(t *testing.T) {
	path := writeBitmap(t, "a", "spam@example.com", " b ", "\xff\xfe", "")
	for _, c := range []struct {
		in, want string
		args     []string
		no       bool
	}{
		{in: "a\nb\nspam@example.com\n b \n\xff\xfe\n\nx", want: "a\nspam@example.com\n b \n\xff\xfe\n\n"},
		{in: "not read", args: []string{"a", "b"}, want: "a\n"},
		{in: "not read", args: []string{"--", "-a"}, want: "", no: true},
		{in: "b\nA\na\r\n", want: "", no: true},
		{in: "", want: "", no: true},
	} {
		got, err := runHashes(strings.NewReader(c.in), append([]string{"query", path}, c.args...)...)
		if got != c.want || errors.Is(err, cli.ErrNo) != c.no || err != nil && !c.no {
			t.Errorf("%q %q: %q, %v; want %q", c.in, c.args, got, err, c.want)
		}
	}
}

// TestHashesQueryBits compares the JSON with the hashes and the bits of the file.
func TestHashesQueryBits(t *testing.T) {
	path := writeBitmap(t, "a", "b")
	bits, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	keys := []string{"a", "c", "\xff", "<>"}
	got, err := runHashes(nil, append([]string{"query", "--json", path}, keys...)...)
	if err != nil {
		t.Fatal(err)
	}
	var answers []struct {
		Key        *string `json:"key"`
		KeyHex     string  `json:"key_hex"`
		MayContain bool    `json:"may_contain"`
		Probes     []bloom.Probe
	}
	if err := json.Unmarshal([]byte(got), &answers); err != nil || len(answers) != len(keys) {
		t.Fatalf("%v: %s", err, got)
	}
	for i, a := range answers {
		if (a.Key == nil) != (keys[i] == "\xff") || a.MayContain != (keys[i] == "a") || len(a.Probes) != 11 {
			t.Errorf("%q: %+v", keys[i], a)
		}
		all := true
		for j, h := range hashfamily.Hashes() {
			sum := h.Sum([]byte(keys[i]))
			p := a.Probes[j]
			set := bits[p.Index/8]>>(p.Index%8)&1 == 1
			all = all && set
			if p.Hash != h.Name || p.Value != uint64(sum) || p.Index != uint64(sum%bloom.ClassicBits) || p.Set != set {
				t.Errorf("%q: %+v, want %s, %d, %t", keys[i], p, h.Name, sum, set)
			}
		}
		if a.MayContain != all {
			t.Errorf("%q: %+v", keys[i], a)
		}
	}
	if got, err := runHashes(strings.NewReader(""), "query", "--json", path); !errors.Is(err, cli.ErrNo) || strings.Join(strings.Fields(got), "") != "[]" {
		t.Errorf("no keys: %q, %v", got, err)
	}
}

// TestHashesQueryMany asks for all keys of a list, none of which may be missing, and for as
// many others.
func TestHashesQueryMany(t *testing.T) {
	var keys, others bytes.Buffer
	for _, d := range disposable.Domains()[:20000] {
		keys.Write(append(d, '\n'))
		others.Write(append([]byte("x-"), append(d, '\n')...))
	}
	path := filepath.Join(t.TempDir(), "bitmap.bin")
	if _, err := runHashes(bytes.NewReader(keys.Bytes()), "bitmap", "--out", path); err != nil {
		t.Fatal(err)
	}
	if got, err := runHashes(bytes.NewReader(keys.Bytes()), "query", path); err != nil || got != keys.String() {
		t.Errorf("%v, %d bytes of %d", err, len(got), keys.Len())
	}
	if got, err := runHashes(bytes.NewReader(others.Bytes()), "query", path); err == nil && strings.Count(got, "\n") > 20 {
		t.Errorf("%d false positives", strings.Count(got, "\n"))
	}
}

func TestHashesQueryErrors(t *testing.T) {
	dir := t.TempDir()
	short, long := filepath.Join(dir, "short"), filepath.Join(dir, "long")
	if err := errors.Join(os.WriteFile(short, []byte("x"), 0o600), os.WriteFile(long, nil, 0o600), os.Truncate(long, bloom.ClassicBits/8+1)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "name the file of the bitmap"},
		{[]string{filepath.Join(dir, "none")}, "no such file"},
		{[]string{dir, "a"}, "is a directory"},
		{[]string{short, "a"}, "short has 1 bytes, and the bitmap of a classic filter 33554432: spamgate hashes bitmap --out FILE writes one"},
		{[]string{long, "a"}, "long has 33554433 bytes"},
		{[]string{os.DevNull, "a"}, "is a device"},
	} {
		if got, err := runHashes(nil, append([]string{"query"}, c.args...)...); err == nil || !strings.Contains(err.Error(), c.want) || got != "" {
			t.Errorf("%q: %q, %v; want %q", c.args, got, err, c.want)
		}
	}
}
