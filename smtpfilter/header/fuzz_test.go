package header

import (
	"net/mail"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxGrowth bounds all addresses of a section together, in bytes for a byte of
// it: each byte is in a few readings at most.
const maxGrowth = 96

// checkResult checks what must be true of any section's result.
func checkResult(t *testing.T, section []byte, r Result) {
	t.Helper()
	total := 0
	for i, s := range r.Senders {
		total += len(s.Address)
		checkAddress(t, s.Address)
		if slices.Contains(r.Empty, s.Field) {
			t.Errorf("%s is empty and names %q", s.Field, s.Address)
		}
		if i < 100 && slices.Contains(r.Senders[:i], s) {
			t.Errorf("%v twice", s)
		}
	}
	for i, f := range r.Forms {
		if i < 100 && slices.Contains(r.Forms[:i], f) {
			t.Errorf("%+v twice", f)
		}
		for _, a := range f.Readings() {
			total += len(a)
			if !strings.Contains(a, "@") || !utf8.ValidString(a) {
				t.Errorf("the form %q is read as %q", f.Text, a)
			}
			Routes(a)
		}
	}
	if total > maxGrowth*(len(section)+1) {
		t.Errorf("%d bytes of addresses from %d bytes", total, len(section))
	}
	if len(r.MessageID) > maxMessageID || strings.ContainsFunc(r.MessageID, func(c rune) bool { return c < ' ' || c > '~' }) {
		t.Errorf("MessageID %q", r.MessageID)
	}
}

// checkAddress checks that a strict parser accepts an address.
func checkAddress(t *testing.T, a string) {
	t.Helper()
	if !utf8.ValidString(a) || strings.ContainsFunc(a, func(r rune) bool { return r < ' ' || 0x7f <= r && r < 0xa0 }) {
		t.Errorf("%q holds control characters or no UTF-8", a)
	}
	pos := strings.LastIndexByte(a, '@')
	if pos < 1 || pos == len(a)-1 {
		t.Errorf("%q has no local part or domain", a)
		return
	}
	if a[pos+1] == '[' || strings.HasPrefix(a, `""@`) {
		return // net/mail knows neither IPv6 literals nor the empty local part
	}
	parsed, err := mail.ParseAddress("<" + a + ">")
	if err != nil {
		t.Errorf("%q: %v", a, err)
		return
	}
	if got := parsed.Address[strings.LastIndexByte(parsed.Address, '@'):]; got != a[pos:] {
		t.Errorf("%q has the domain %q for a strict parser", a, got)
	}
}

func FuzzSenders(f *testing.F) {
	for _, c := range readCases(f) {
		f.Add(c.section)
	}
	f.Add([]byte("Message-ID: <a@b.example>\r\nFrom: a@b.example"))
	f.Fuzz(func(t *testing.T, section []byte) {
		checkResult(t, section, Senders(section, asked))
	})
}

// scanned returns what the scanner alone finds in a value.
func scanned(value string) []string {
	c := collector{states: make([]fieldState, 1), budget: budget{left: 1 << 30}}
	c.scan(value)
	return addressesOf(c.senders)
}

func addressesOf(senders []Sender) []string {
	var all []string
	for _, s := range senders {
		all = append(all, s.Address)
	}
	return all
}

// once removes repetitions.
func once(all []string) []string {
	var kept []string
	for _, a := range all {
		if !slices.Contains(kept, a) {
			kept = append(kept, a)
		}
	}
	return kept
}

// FuzzAgreement checks that go-message and the scanner find the same in a clean value, so
// that go-message misses nothing.
func FuzzAgreement(f *testing.F) {
	for _, c := range readCases(f) {
		for s := (splitter{rest: c.section}); s.next(); {
			f.Add(unfold(s.value))
		}
	}
	f.Fuzz(func(t *testing.T, value string) {
		if !mayHoldAddress(value) || !isClean(value) {
			return
		}
		parsed := (&budget{left: 1 << 30}).parse(value)
		if len(parsed) == 0 {
			return
		}
		if scanned := scanned(value); !slices.Equal(once(parsed), scanned) {
			t.Errorf("%q\n parsed %q\nscanned %q", value, parsed, scanned)
		}
	})
}
