package listfile

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"spamgate/internal/disposable"
)

// realSamples are the published files of testdata/real (its README says where
// they are from), and what was counted in them by hand: keys are the first and
// the last.
var realSamples = []struct {
	file    string
	options Options
	entries int
	refused int // as unsupported; no line is invalid
	keys    [2]string
}{
	{"hosts.txt", Options{Format: Hosts}, 40, 0, [2]string{"@01mspmd5yalky8.com", "@sdk.adincube.com"}},
	{"adblock.txt", Options{Format: Adblock}, 48, 0, [2]string{"25z5g623wpqpdwis.onion.to", "3qbyaoohkcqkzrz6.tormaster.ch"}},
	{"dnsmasq.txt", Options{Format: Dnsmasq}, 48, 0, [2]string{"account.whatsapp.com", "ftl.whatsapp.com"}},
	{"rpz.zone", Options{Format: RPZ}, 28, 0, [2]string{"criteo.net", "xdr.fr"}},
	{"rspamd.inc", Options{Format: Rspamd, Allow: true}, 49, 3, [2]string{"@18f.gov", "@alipay.com"}},
	{"csv.csv", Options{Format: CSV, Column: "raw_domain"}, 28, 0, [2]string{"sa.apple.com", "www.google.com"}},
	{"json.json", Options{Format: JSON}, 56, 0, [2]string{"0x01.gq", "emltmp.com"}},
}

// TestRealSamples reads each file in its format, as whatever it is recognised
// as, and packed.
func TestRealSamples(t *testing.T) {
	for _, s := range realSamples {
		text, err := os.ReadFile("testdata/real/" + s.file)
		if err != nil {
			t.Fatal(err)
		}
		o := s.options
		o.Now = sampleNow
		got := readOnce(bytes.NewReader(text), o)
		if got.err != nil {
			t.Errorf("%s: %v", s.file, got.err)
		}
		if len(got.entries) == 0 {
			t.Errorf("%s: no entries", s.file)
			continue
		}
		keys := [2]string{got.entries[0].Key, got.entries[len(got.entries)-1].Key}
		if r := got.result; r.Entries != s.entries || r.Invalid != 0 || r.Unsupported != s.refused || keys != s.keys {
			t.Errorf("%s: %d entries, %d invalid, %d unsupported, from %q; want %d, 0, %d, from %q",
				s.file, r.Entries, r.Invalid, r.Unsupported, keys, s.entries, s.refused, s.keys)
		}
		sameInParallel(t, string(text), o, got)
		compareGolden(t, "testdata/real/"+s.file+".golden", outcome(got))

		auto := o
		auto.Format = Auto
		recognised := readOnce(bytes.NewReader(text), auto)
		if notes := recognised.result.Notes; len(notes) == 0 || !strings.HasPrefix(notes[0], "recognised as "+kinds[o.Format]+": ") {
			t.Errorf("%s: recognised as %s, notes %q", s.file, recognised.result.Format, notes)
			continue
		}
		recognised.result.Notes = recognised.result.Notes[1:]
		if outcome(recognised) != outcome(got) {
			t.Errorf("%s: as recognised\n%s\nwant\n%s", s.file, outcome(recognised), outcome(got))
		}

		for name, packed := range map[string]string{"gzip": gzipped(t, string(text)), "zstd": zstded(t, string(text))} {
			unpacked := readOnce(strings.NewReader(packed), o)
			if outcome(unpacked) != outcome(got) || unpacked.result.Packed != name {
				t.Errorf("%s, packed as %s:\n%s\nwant\n%s", s.file, name, outcome(unpacked), outcome(got))
			}
		}
	}
}

// TestRealPlainList: the embedded list, which TestRealList reads, is recognised.
func TestRealPlainList(t *testing.T) {
	if f, why := Detect([]byte(disposable.Text())[:readBuffer]); f != Plain {
		t.Errorf("%s, because %s", f, why)
	}
}
