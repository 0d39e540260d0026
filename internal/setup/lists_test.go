package setup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"spamgate/blocklist"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
	"spamgate/internal/config"
	"spamgate/internal/providers"
)

// The two packages that know of filters have the same defaults and the same
// limits: what one takes as "not given" or refuses, the other does.
func TestFilterDefaults(t *testing.T) {
	c := config.Default()
	b, err := BlocklistConfig(&c, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := blocklist.Filter{Kind: blocklist.KindClassic, Family: "classic", FPR: blocklist.DefaultFPR, CounterBits: blocklist.DefaultCounterBits}
	if b.Filter != want {
		t.Errorf("%+v, want %+v", b.Filter, want)
	}
}

// TestKindsAndFamilies: what goes with what in a file goes in package blocklist,
// too, and nothing else.
func TestKindsAndFamilies(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	for _, kind := range append(blocklist.Kinds(), "cuckoo") {
		for _, family := range []string{"", "classic", "classic9", "classic:RS,JS,AP", "double", "double:murmur3", "seeded", "digest", "weighted"} {
			text := fmt.Sprintf("[filter]\nkind = %q\nfpr = 1e-3\n", kind)
			if family != "" {
				text += fmt.Sprintf("family = %q\n", family)
			}
			if err := os.WriteFile(path, []byte(text+"[[list]]\nname = \"a\"\npath = \"a\"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			f := blocklist.Filter{Kind: kind, Family: family, FPR: 1e-3}
			c, err := config.Load(path)
			if (err == nil) != (f.Validate() == nil) {
				t.Errorf("%s, %s: in a file %v, in package blocklist %v", kind, family, err, f.Validate())
			}
			if err == nil && family == "" && c.Filter.Family != kind.DefaultFamily() {
				t.Errorf("%s: family %q in a file, %q in package blocklist", kind, c.Filter.Family, kind.DefaultFamily())
			}
		}
	}
}

// TestListDefaults: what a list's keys say when they say nothing is what package
// blocklist does when it is told nothing.
func TestListDefaults(t *testing.T) {
	list := config.DefaultList()
	list.Name, list.Path = "a", "/a"
	got, err := blocklistList(list)
	if err != nil {
		t.Fatal(err)
	}
	if got.MaxShrink != store.DefaultMaxShrink || got.MaxGrowth != store.DefaultMaxGrowth || got.OnProtected != store.SkipProtected || got.MaxBytes != 0 {
		t.Errorf("%+v", got)
	}
	fetched := config.DefaultList()
	fetched.Name, fetched.URL, fetched.Copy, fetched.MaxGrowth = "a", "https://lists.example/a", "/state[1]/a", 0
	if got, err = blocklistList(fetched); err != nil {
		t.Fatal(err)
	}
	if got.MaxBytes != 256<<20 || got.MaxGrowth >= 0 || !slices.Equal(got.Paths, []string{`/state\[1]/a`}) || got.URL != fetched.URL {
		t.Errorf("%+v", got)
	}
}

// TestProtected: own names and the providers', each once.
func TestProtected(t *testing.T) {
	got := Protected(config.Guard{Protect: []string{"example.com", "gmail.com"}, ProtectProviders: true})
	if len(got) != len(providers.Domains())+1 || !slices.IsSorted(got) || !slices.Contains(got, "example.com") {
		t.Errorf("%d names: %q", len(got), got)
	}
	if got := Protected(config.Guard{}); len(got) != 0 {
		t.Errorf("%q", got)
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
		b := store.Config{
			Filter: blocklist.Filter{Kind: blocklist.KindSized, Family: tt.family, FPR: tt.fpr},
			Lists:  []store.List{{Name: "a", Paths: []string{path}, Action: verdict.Reject}},
		}
		if err := b.Validate(); (err == nil) != tt.good {
			t.Errorf("%s, %v: %v", tt.family, tt.fpr, err)
		}
	}
}
