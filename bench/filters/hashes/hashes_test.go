package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"spamgate/internal/hashlab"
)

// TestWyhash compares with the vectors of wyhash's own test_vector.cpp (final
// version 4.2): the i-th text under the seed i.
func TestWyhash(t *testing.T) {
	for seed, v := range []struct {
		text string
		want uint64
	}{
		{"", 0x93228a4de0eec5a2},
		{"a", 0xc5bac3db178713c4},
		{"abc", 0xa97f2f7b1d9b3314},
		{"message digest", 0x786d1f1df3801df4},
		{"abcdefghijklmnopqrstuvwxyz", 0xdca5a8138ad37c87},
		{"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", 0xb9e734f117cfaf70},
		{strings.Repeat("1234567890", 8), 0x6cc5eab49a92d617},
	} {
		if got := wyhash([]byte(v.text), uint64(seed)); got != v.want {
			t.Errorf("%q: %#x, want %#x", v.text, got, v.want)
		}
	}
}

// TestVectors compares the libraries with published values.
func TestVectors(t *testing.T) {
	count := make([]byte, 15) // SipHash's paper, appendix A
	for i := range count {
		count[i] = byte(i)
	}
	for _, v := range []struct {
		name string
		key  []byte
		want uint64
	}{
		{"SipHash-2-4", count, 0xa129ca6149be45e5},
		{"XXH64", nil, 0xef46db3751d8e999},
		{"XXH64", []byte("abc"), 0x44bc2cf5ad770999},
		{"FNV-1a", []byte("foobar"), 0xbf9cf968},
		{"FNV-1a-64", []byte("foobar"), 0x85944171f73967e8},
		{"CRC32C", []byte("123456789"), 0xe3069283},
		{"CityHash64", nil, 0x9ae16a3b2f90404f},
	} {
		for _, h := range others() {
			if h.Name == v.name && h.Sum(v.key) != v.want {
				t.Errorf("%s of %q: %#x, want %#x", v.name, v.key, h.Sum(v.key), v.want)
			}
		}
	}
}

// TestMeasure wants all hashes and families in the report of a small run, and the
// indices of both methods to agree.
func TestMeasure(t *testing.T) {
	c := &hashlab.Corpus{Name: "numbers"}
	for i := range 1500 {
		c.Keys = append(c.Keys, fmt.Appendf(nil, "user%d@example.com", i))
	}
	var out bytes.Buffer
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	untilSpeed := func(_ float64, what string) { // which takes long
		if what == "speed" {
			cancel()
		}
	}
	if err := measure(ctx, hashlab.Options{Corpora: []*hashlab.Corpus{c}, Seed: 1, Progress: untilSpeed}, true, &out); err != nil {
		t.Fatal(err)
	}
	var r hashlab.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	measured := map[string]bool{}
	for _, a := range r.Avalanche {
		measured[a.Name] = true
	}
	for _, f := range r.FPR {
		measured[f.Name] = measured[f.Name] || f.K == functions
	}
	for _, h := range others() {
		if !measured[h.Name] {
			t.Errorf("%s is not measured", h.Name)
		}
	}
	for _, own := range families() {
		if !measured[own.Name] {
			t.Errorf("%s is not measured", own.Name)
		}
		f, err := own.New(1 << 16)
		if err != nil {
			t.Fatal(err)
		}
		for i, index := range f.AppendIndices(nil, []byte("example.com")) {
			if index != f.Index(i, []byte("example.com")) || index >= 1<<16 {
				t.Errorf("%s: index %d is %d and %d", f.Name(), i, index, f.Index(i, []byte("example.com")))
			}
		}
	}
}

func TestOptions(t *testing.T) {
	for args, want := range map[string]string{"surprise": `unexpected argument "surprise"`, "--colour": "flag provided but not defined", "--seed x": "invalid value"} {
		var out, errs strings.Builder
		if code := run(strings.Fields(args), &out, &errs); code != 2 || !strings.Contains(errs.String(), want) || out.Len() > 0 {
			t.Errorf("%s: code %d, error %q", args, code, errs.String())
		}
	}
}
