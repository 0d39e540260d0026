package main

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// small holds options for a quick run. A filter of 2^19 bits for 20,000 entries is
// as full as one of 2^28 for 10 million.
var small = []string{"--entries", "20000", "--classic-bits", "524288", "--trials", "200000", "--lookups", "2000", "--rounds", "2", "--builds", "1"}

// TestMeasure runs everything and holds what does not depend on the machine: no
// key that was added is denied (that would be an error), and false positives are
// as many as the filters promise.
func TestMeasure(t *testing.T) {
	var out, progress strings.Builder
	if code := run(append(small, "--json"), &out, &progress); code != 0 {
		t.Fatalf("exit code %d: %s", code, progress.String())
	}
	var r report
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Filters {
		if len(f.Build) != 1 || len(f.Absent) != 2 || len(f.Present) != 2 || f.BytesPerKey < 1 {
			t.Errorf("%s: incomplete: %+v", f.Name, f)
		}
		// 0 to 10 for about 2 expected; the 8-bit fingerprints are wrong once in 256.
		least, most := 0, 10
		if f.Name == "binary fuse, 8 bits" {
			least, most = 650, 920
		}
		if f.FalsePositives < least || f.FalsePositives > most {
			t.Errorf("%s: %d false positives, want %d to %d", f.Name, f.FalsePositives, least, most)
		}
	}

	var table strings.Builder
	if err := r.writeText(&table); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(table.String()) {
		if text := strings.TrimSuffix(line, "\n"); len(text) > 100 || strings.HasSuffix(text, " ") {
			t.Errorf("%d bytes, or a space at the end: %q", len(text), text)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		args string
		want string
	}{
		{"surprise", `unexpected argument "surprise"`},
		{"--entries 10", "--entries must be"},
		{"--classic-bits 0", "--classic-bits must be 1 to 4294967296"},
		{"--trials 1", "--trials must be"},
		{"--trials 1000 --lookups 2000", "--lookups must be 1000 to 1000"},
		{"--rounds 0", "--rounds must be"},
		{"--builds 0", "--builds must be"},
		{"--colour", "flag provided but not defined"},
	} {
		var out, errs strings.Builder
		if code := run(strings.Fields(c.args), &out, &errs); code != 2 || !strings.Contains(errs.String(), c.want) || out.Len() > 0 {
			t.Errorf("%s: code %d, output %q, error %q; want 2, none, %q", c.args, code, out.String(), errs.String(), c.want)
		}
	}
}

func TestAddressesDiffer(t *testing.T) {
	seen := make(map[string]bool)
	for _, keys := range [][][]byte{addresses(5000, 0), addresses(5000, 5000)} {
		for _, key := range keys {
			if seen[string(key)] || bytes.Count(key, []byte("@")) != 1 {
				t.Fatalf("%q: there before, or no address", key)
			}
			seen[string(key)] = true
		}
	}
}

func TestMedianAndRatio(t *testing.T) {
	if got := median([]float64{3, 1, 2}); got != 2 {
		t.Errorf("median of 3, 1, 2: %v", got)
	}
	if got := median([]float64{4, 1, 2, 3}); got != 2.5 {
		t.Errorf("median of 4, 1, 2, 3: %v", got)
	}
	if got := ratio([]float64{1, 20, 3}, []float64{2, 10, 30}); math.Abs(got-0.5) > 1e-9 {
		t.Errorf("ratio %v, want the median of 0.5, 2 and 0.1", got)
	}
}
