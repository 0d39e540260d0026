package sender

import (
	"strings"
	"testing"
)

func TestUnwrap(t *testing.T) {
	samples := rows(t, "unwrap.tsv")
	if len(samples) < 60 {
		t.Fatalf("%d samples", len(samples))
	}
	for _, c := range samples {
		a, err := Parse(c[0])
		if err != nil {
			t.Errorf("Parse(%q): %v", c[0], err)
			continue
		}
		got := "-"
		inner, scheme, ok := Unwrap(a, SRS|BATV)
		if ok {
			got = scheme + " " + inner.String()
		}
		if got != c[1] {
			t.Errorf("Unwrap(%q) = %s, want %s", a, got, c[1])
		}
		checkUnwrap(t, a)
	}
}

// checkUnwrap holds what is true of any address: what is within is as Parse makes it,
// repeated unwrapping ends, and a kind that was not asked for is not unwrapped.
func checkUnwrap(t *testing.T, a Address) {
	t.Helper()
	kinds := map[string]Wrappings{"srs0": SRS, "srs1": SRS, "srs": SRS, "prvs": BATV, "msprvs1": BATV, "btv1": BATV}
	if _, _, ok := Unwrap(a, 0); ok {
		t.Errorf("Unwrap(%q, 0) = _, _, true", a)
	}
	for _, w := range []Wrappings{SRS, BATV} {
		inner, scheme, ok := Unwrap(a, w)
		switch {
		case !ok && (inner != Address{} || scheme != ""):
			t.Errorf("Unwrap(%q, %d) = %q, %q, false", a, w, inner, scheme)
		case ok && kinds[scheme] != w:
			t.Errorf("Unwrap(%q, %d) took off %q", a, w, scheme)
		}
	}
	for {
		inner, _, ok := Unwrap(a, SRS|BATV)
		if !ok {
			return
		}
		if inner.IsNull() || len(inner.Local()) >= len(a.Local()) {
			t.Fatalf("Unwrap(%q) = %q", a, inner)
		}
		checkFixedPoint(t, inner)
		a = inner
	}
}

func FuzzUnwrap(f *testing.F) {
	for _, c := range rows(f, "unwrap.tsv") {
		f.Add(c[0])
	}
	f.Fuzz(func(t *testing.T, s string) {
		if a, err := Parse(s); err == nil {
			checkUnwrap(t, a)
		}
	})
}

// An address cannot make Unwrap do much: a chain as long as a command line allows is
// unwrapped in one step at a time.
func TestUnwrapLongChain(t *testing.T) {
	a, err := Parse(strings.Repeat("srs0=a=b=c.example=", 100) + "user@d.example")
	if err != nil {
		t.Fatal(err)
	}
	layers := 0
	for {
		inner, _, ok := Unwrap(a, SRS)
		if !ok {
			break
		}
		a, layers = inner, layers+1
	}
	if layers != 100 || a.String() != "user@c.example" {
		t.Errorf("%d layers, then %q", layers, a)
	}
}

func TestUnwrapAllocs(t *testing.T) {
	for _, s := range []string{"", benchSender, "list-return-1-user=example.com@lists.example", `"a b=c"@example.com`} {
		a, err := Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { Unwrap(a, SRS|BATV) }); n != 0 {
			t.Errorf("Unwrap(%q): %v allocations", a, n)
		}
	}
}

func TestAligned(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"example.com", "example.com", true},
		{"mail.example.com", "example.com", true},
		{"a.b.example.com", "c.example.com", true},
		{"example.co.uk", "mail.example.co.uk", true},
		{"example.co.uk", "other.co.uk", false},
		{"example.com", "example.org", false},
		{"notexample.com", "example.com", false},
		{"example.com", "com", false},
		{"com", "com", true},
		{"co.uk", "co.uk", true},
		{"co.uk", "org.uk", false},
		{"com", "org", false},
		{"github.io", "co.uk", false},
		{"localhost", "com", false},
		{"localhost", "localhost", true},
		{"a.localhost", "b.a.localhost", true},
		{"a.localhost", "b.localhost", false},
		{"ann.github.io", "bob.github.io", false},
		{"ann.github.io", "github.io", false},
		{"www.ann.github.io", "ann.github.io", true},
		{"ann.onmicrosoft.com", "bob.onmicrosoft.com", false},
		{"city.kawasaki.jp", "www.city.kawasaki.jp", true},
		{"a.b.kawasaki.jp", "c.b.kawasaki.jp", false},
		{"xn--bcher-kva.example", "mail.xn--bcher-kva.example", true},
		{"[192.0.2.1]", "[192.0.2.1]", false},
		{"example.com", "[192.0.2.1]", false},
		{"", "", false},
		{"example.com", "", false},
	} {
		if Aligned(c.a, c.b) != c.want || Aligned(c.b, c.a) != c.want {
			t.Errorf("Aligned(%q, %q) is not %t both ways", c.a, c.b, c.want)
		}
	}
}

func BenchmarkUnwrap(b *testing.B) {
	for _, c := range []struct{ name, in string }{
		{"none", benchSender},
		{"recipient", "list-return-1-user=example.com@lists.example"},
		{"srs0", "srs0=abcd=qr=example.com=user@forwarder.example"},
		{"prvs", "prvs=0123abcdef=user@example.com"},
	} {
		b.Run(c.name, func(b *testing.B) {
			a, err := Parse(c.in)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				Unwrap(a, SRS|BATV)
			}
		})
	}
}
