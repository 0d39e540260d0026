package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"spamgate/blocklist"
	"spamgate/internal/config"
)

// The two packages that know of filters have the same defaults and the same
// limits: what one takes as "not given" or refuses, the other does.
func TestFilterDefaults(t *testing.T) {
	c := config.Default()
	b, err := blocklistConfig(&c, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := blocklist.Filter{Kind: blocklist.KindClassic, Family: "classic", FPR: blocklist.DefaultFPR, CounterBits: blocklist.DefaultCounterBits}
	if b.Filter != want {
		t.Errorf("%+v, want %+v", b.Filter, want)
	}
}

func TestFilterLimits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	for _, tt := range []struct {
		family string
		fpr    float64
		good   bool
	}{
		{"double", blocklist.MinFPR, true},
		{"double", blocklist.MinFPR * 0.99, false},
		{"double", blocklist.MaxFPR, true},
		{"double", blocklist.MaxFPR * 1.01, false},
		{"seeded", 1e-4, true},
		{"seeded", 1e-6, false},
	} {
		text := fmt.Sprintf("[filter]\nkind = \"sized\"\nfamily = %q\nfpr = %g\n[[list]]\nname = \"a\"\npath = \"a\"\n", tt.family, tt.fpr)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := config.Load(path); (err == nil) != tt.good {
			t.Errorf("%s, %v, in a file: %v", tt.family, tt.fpr, err)
		}
		b := blocklist.Config{
			Filter: blocklist.Filter{Kind: blocklist.KindSized, Family: tt.family, FPR: tt.fpr}, Confirm: true,
			Lists: []blocklist.List{{Name: "a", Paths: []string{path}, Action: blocklist.Reject}},
		}
		if err := b.Validate(); (err == nil) != tt.good {
			t.Errorf("%s, %v: %v", tt.family, tt.fpr, err)
		}
	}
}
