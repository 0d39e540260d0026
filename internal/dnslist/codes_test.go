package dnslist

import (
	"net/netip"
	"strings"
	"testing"
)

func TestParseCodes(t *testing.T) {
	for _, c := range []struct{ values, want string }{
		{"", DefaultCodes},
		{"127.0.0.2", "127.0.0.2"},
		{"127.0.1.2-127.0.1.99 127.0.1.102", "127.0.1.2-127.0.1.99 127.0.1.102"},
		{"127.0.0.2-127.0.0.2", "127.0.0.2"},
		{"&8 &64", "&8 &64"},
		{"&0.0.0.8", "&8"},
		{"&0.0.1.0 &256", "&0.0.1.0 &0.0.1.0"},
	} {
		codes, err := ParseCodes(strings.Fields(c.values))
		if err != nil || codes.String() != c.want {
			t.Errorf("%q is %q, %v, want %q", c.values, codes, err, c.want)
		}
	}
}

func TestBadCodes(t *testing.T) {
	for value, want := range map[string]string{
		"":                      "is not an address",
		"yes":                   "is not an address",
		"127.0.0":               "is not an address",
		"::1":                   "is not an address",
		"127.0.0.2-":            "is not an address",
		"127.0.0.2 - 127.0.0.3": "is not an address",
		"128.0.0.2":             "outside 127.0.0.0/8",
		"127.0.0.2-128.0.0.1":   "outside 127.0.0.0/8",
		"127.0.0.9-127.0.0.2":   "ends before it begins",
		"127.0.0.1":             "never counts",
		"127.0.0.0-127.0.0.1":   "never counts",
		"127.255.255.254":       "refuses the question",
		"&":                     "is not a bit",
		"&-1":                   "is not a bit",
		"&0":                    "no bit of",
		"&127.0.0.8":            "several bits",
		"&24":                   "a value for each, &8 &16;",
		"&0x8":                  "is not a bit",
		"&64.0.0.0":             "no bit of",
	} {
		if _, err := ParseCodes([]string{value}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", value, err, want)
		}
	}
	if _, err := ParseCodes(make([]string, maxCodes+1)); err == nil {
		t.Errorf("%d codes are taken", maxCodes+1)
	}
}

// TestCounting checks which answers count.
func TestCounting(t *testing.T) {
	for _, c := range []struct {
		codes, answer, want string
		unusable            Cause
	}{
		{"", "127.0.0.2", "127.0.0.2", ""},
		{"", "127.0.0.2 127.0.1.4", "127.0.0.2 127.0.1.4", ""},
		{"", "127.0.0.1", "", ""},
		{"", "127.0.0.1 127.0.0.2", "127.0.0.2", ""},
		{"", "127.0.0.0", "", ""},
		{"", "127.255.254.255", "127.255.254.255", ""},
		{"", "127.255.255.254", "", CauseRefused},
		{"", "127.0.0.2 127.255.255.252", "", CauseRefused},
		{"", "127.0.0.2 192.0.2.1", "", CauseForeign},
		{"", "0.0.0.0", "", CauseForeign},
		{"127.0.0.2", "127.0.0.3", "", ""},
		{"127.0.0.2-127.0.0.4", "127.0.0.1 127.0.0.3 127.0.0.5", "127.0.0.3", ""},
		{"127.0.0.0-127.255.255.255", "127.0.0.1", "", ""},
		{"127.0.0.0-127.255.255.255", "127.255.255.255", "", CauseRefused},
		{"&8", "127.0.0.72", "127.0.0.72", ""},
		{"&8", "127.0.0.64", "", ""},
		{"&1", "127.0.0.1", "", ""},
		{"&1", "127.0.0.3", "127.0.0.3", ""},
		{"&8 &64", "127.0.0.64", "127.0.0.64", ""},
		{"&0.0.1.0", "127.0.1.2", "127.0.1.2", ""},
	} {
		codes, err := ParseCodes(strings.Fields(c.codes))
		if err != nil {
			t.Fatal(err)
		}
		var answer []netip.Addr
		for a := range strings.FieldsSeq(c.answer) {
			answer = append(answer, netip.MustParseAddr(a))
		}
		var got []string
		addrs, unusable := counting(codes.rules(), answer)
		for _, a := range addrs {
			got = append(got, a.String())
		}
		if text := strings.Join(got, " "); text != c.want || unusable != c.unusable {
			t.Errorf("of %q %q counts, and %q; want %q and %q (codes %q)", c.answer, text, unusable, c.want, c.unusable, c.codes)
		}
	}
}

// FuzzParseCodes: what can be parsed has a normal form, which says the same.
func FuzzParseCodes(f *testing.F) {
	for _, seed := range []string{"127.0.0.2", "127.0.0.2-127.0.1.255", "&8", "&0.0.1.0", "&24", "127.255.255.1", "-", "&"} {
		f.Add(seed, uint32(0x7f000002))
		f.Add(seed+" "+seed, uint32(0x7fffff01))
	}
	f.Fuzz(func(t *testing.T, text string, answer uint32) {
		codes, err := ParseCodes(strings.Fields(text))
		if err != nil {
			return
		}
		again, err := ParseCodes(strings.Fields(codes.String()))
		if err != nil || again.String() != codes.String() {
			t.Fatalf("%q is %q, and that is %q, %v", text, codes, again, err)
		}
		counts, unusable := counting(codes.rules(), []netip.Addr{address(answer)})
		if len(counts) > 0 && (!isListing(answer) || unusable != "") {
			t.Errorf("%v counts, and is %q", address(answer), unusable)
		}
	})
}
