package hashfamily

import (
	"strings"
	"testing"
)

func TestParseSpec(t *testing.T) {
	const all = "RS,JS,PJW,ELF,BKDR,SDBM,DJB,DEK,BP,FNV,AP"
	for _, c := range []struct {
		name string
		want string // String of the result; "" where an error is wanted
		says string // in the error
	}{
		{"classic", "classic", ""},
		{"classic:RS,JS,AP", "classic:RS,JS,AP", ""},
		{"classic:AP", "classic:AP", ""},
		{"classic:" + all, "classic", ""},
		{"classic:JS,RS", "classic:JS,RS", ""},
		{"classic9", "classic9", ""},
		{"classic:RS,JS,PJW,BKDR,SDBM,DJB,DEK,FNV,AP", "classic9", ""},
		{"weighted", "weighted", ""},
		{"weighted:5,7,11,13,31,37,61", "weighted", ""},
		{"weighted:7,5", "weighted:7,5", ""},
		{"weighted:007", "weighted:7", ""},
		{"weighted:4294967295", "weighted:4294967295", ""},
		{"digest", "digest", ""},
		{"double", "double", ""},
		{"double:murmur3", "double:murmur3", ""},
		{"double:plain", "double:plain", ""},
		{"seeded", "seeded", ""},
		{"seeded:0", "seeded", ""},
		{"seeded:00042", "seeded:42", ""},
		{"seeded:18446744073709551615", "seeded:18446744073709551615", ""},

		{"", "", `"classic"`},
		{"Classic", "", `"classic9"`},
		{"quantum", "", `"weighted:5,7,11"`},
		{"quantum:5", "", `"double:murmur3"`},
		{"classic9:RS", "", "unknown"},
		{"digest:md5", "", `"digest"`},
		{"classic:", "", `"classic:RS,JS,AP"`},
		{"weighted:", "", `"weighted:5,7,11"`},
		{"double:", "", `"double:murmur3"`},
		{"seeded:", "", `"seeded:42"`},
		{"classic:RS,", "", all},
		{"classic:RS, JS", "", `" JS"`},
		{"classic:rs", "", all},
		{"classic:MD5", "", `"MD5"`},
		{"classic:RS,JS,RS", "", "repeated"},
		{"weighted:5,,7", "", `""`},
		{"weighted:5,7,5", "", "repeated"},
		{"weighted:0", "", "use 1 to 4294967295"},
		{"weighted:-1", "", "from 1 to 4294967295"},
		{"weighted:4294967296", "", "from 1 to 4294967295"},
		{"weighted:five", "", `"five"`},
		{"double:md5", "", `"double:murmur3"`},
		{"seeded:-1", "", "from 0 to 18446744073709551615"},
		{"seeded:18446744073709551616", "", "from 0 to 18446744073709551615"},
		{"seeded:0x1", "", `"0x1"`},
	} {
		spec, err := ParseSpec(c.name)
		if c.want == "" {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("ParseSpec(%q): %q, %v; want an error that says %s", c.name, spec, err, c.says)
			}
			continue
		}
		if err != nil || spec.String() != c.want {
			t.Errorf("ParseSpec(%q): %q, %v; want %q", c.name, spec, err, c.want)
			continue
		}
		if again, err := ParseSpec(spec.String()); err != nil || again.String() != c.want {
			t.Errorf("ParseSpec(%q) again: %q, %v", spec, again, err)
		}
	}
}

func TestSpec(t *testing.T) {
	for _, c := range []struct {
		name        string
		k, maxK     int
		maxM        uint64
		keyed       bool
		independent int // of maxK
	}{
		{"classic", 11, 11, 1 << 32, false, 9},
		{"classic9", 9, 9, 1 << 32, false, 9},
		{"classic:PJW,ELF", 2, 2, 1 << 32, false, 1},
		{"weighted", 7, 7, 1 << 32, false, 7},
		{"weighted:3", 1, 1, 1 << 32, false, 1},
		{"digest", 0, 64, 1 << 63, false, 64},
		{"double", 0, 64, 1 << 58, true, 64},
		{"double:murmur3", 0, 64, 1 << 58, false, 64},
		{"seeded", 0, 15, 1 << 32, false, 15},
	} {
		s, err := ParseSpec(c.name)
		if err != nil {
			t.Fatal(err)
		}
		if s.K() != c.k || s.MaxK() != c.maxK || s.MaxM() != c.maxM || s.Keyed() != c.keyed || s.Independent(c.maxK) != c.independent {
			t.Errorf("%s: K %d, MaxK %d, MaxM %d, Keyed %t, Independent %d; want %+v",
				c.name, s.K(), s.MaxK(), s.MaxM(), s.Keyed(), s.Independent(c.maxK), c)
		}
		family, err := s.New(Params{M: 1024, Key: publicKey})
		want := c.k
		if want == 0 {
			want = DefaultK
		}
		if err != nil || family.K() != want || family.M() != 1024 || family.Name() != c.name {
			t.Errorf("%s without a K: %v, %v; want %d hashes", c.name, family, err, want)
		}
	}
}

func TestFitM(t *testing.T) {
	for _, c := range []struct {
		name    string
		m, want uint64 // 0 where an error is wanted
	}{
		{"classic", 0, 1},
		{"classic", 1000, 1000},
		{"classic", 1 << 32, 1 << 32},
		{"classic", 1<<32 + 1, 0},
		{"weighted", 0, 1},
		{"weighted", 1, 1},
		{"weighted", 3, 4},
		{"weighted", 1 << 25, 1 << 25},
		{"weighted", 1<<25 + 1, 1 << 26},
		{"weighted", 1<<32 - 1, 1 << 32},
		{"weighted", 1<<32 + 1, 0},
		{"digest", 1 << 63, 1 << 63},
		{"digest", 1<<63 + 1, 0},
		{"double", 1<<58 + 1, 0},
		{"seeded", 1<<32 + 1, 0},
	} {
		spec, err := ParseSpec(c.name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := spec.FitM(c.m)
		if got != c.want || (err == nil) != (c.want != 0) {
			t.Errorf("%s, %d bits: %d, %v; want %d", c.name, c.m, got, err, c.want)
		}
		if err == nil {
			if _, err := spec.New(Params{M: got, Key: publicKey}); err != nil {
				t.Errorf("%s does not take the %d bits that fit: %v", c.name, got, err)
			}
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		p    Params
		says string
	}{
		{"classic", Params{}, "0 bits: use 1 to 4294967296"},
		{"classic", Params{M: 1<<32 + 1}, "use 1 to 4294967296"},
		{"classic", Params{M: 8, K: 7}, "7 hashes: it has 11"},
		{"classic", Params{M: 8, K: -1}, "it has 11"},
		{"classic9", Params{M: 8, K: 11}, "it has 9"},
		{"weighted", Params{M: 1000}, "use 512 or 1024"},
		{"weighted", Params{M: 1024, K: 11}, "it has 7"},
		{"digest", Params{}, "0 bits: use 1 to 9223372036854775808"},
		{"digest", Params{M: 8, K: 65}, "65 hashes: use 1 to 64"},
		{"digest", Params{M: 8, K: -1}, "use 1 to 64"},
		{"double", Params{M: 8}, "32 random bytes"},
		{"double", Params{M: 8, Key: publicKey[1:]}, "31 bytes"},
		{"double", Params{M: 1<<58 + 1, Key: publicKey}, "use 1 to 288230376151711744"},
		{"double", Params{M: 8, K: 65, Key: publicKey}, "use 1 to 64"},
		{"double:murmur3", Params{M: 8, K: 65}, "double:murmur3: 65 hashes: use 1 to 64"},
		{"seeded", Params{M: 8, K: 16}, "16 hashes: use 1 to 15"},
		{"seeded:42", Params{M: 1<<32 + 1}, "seeded:42: 4294967297 bits: use 1 to 4294967296"},
	} {
		spec, err := ParseSpec(c.name)
		if err != nil {
			t.Fatal(err)
		}
		if family, err := spec.New(c.p); err == nil || family != nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s of %+v: %v, %v; want an error that says %q", c.name, c.p, family, err, c.says)
		}
	}
	if family, err := (Spec{}).New(Params{M: 8}); err == nil || family != nil || !strings.Contains(err.Error(), "ParseSpec") {
		t.Errorf("the zero Spec: %v, %v; want an error that says ParseSpec", family, err)
	}
}
