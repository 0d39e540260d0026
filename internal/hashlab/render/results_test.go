package render

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"spamgate/internal/hashlab"
)

// TestResults: what is kept shows the same text, and is read from --json, too.
func TestResults(t *testing.T) {
	var kept, plain bytes.Buffer
	if err := Results(&kept, fixture()); err != nil {
		t.Fatal(err)
	}
	if err := JSON(&plain, fixture()); err != nil {
		t.Fatal(err)
	}
	size := kept.Len()
	for name, in := range map[string]*bytes.Buffer{"kept": &kept, "JSON": &plain} {
		r, err := ReadResults(in)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, want := textOf(t, r, TextWidth), textOf(t, fixture(), TextWidth); got != want {
			t.Errorf("%s: shows\n%s\nwant\n%s", name, got, want)
		}
		if flips := len(r.Avalanche[0].Flips); flips != len(fixture().Avalanche[0].Flips) {
			t.Errorf("%s: the first matrix has %d rows", name, flips)
		}
	}
	if size > 20_000 {
		t.Errorf("%d bytes", size)
	}
}

func TestReadResultsRefuses(t *testing.T) {
	pack := func(s string) string {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		io.WriteString(w, s)
		w.Close()
		return out.String()
	}
	for _, tt := range []struct{ name, text, says string }{
		{"nothing", "", "EOF"},
		{"another file", "user@example.com\n", "invalid character"},
		{"another object", `{"version":1}`, "unknown field"},
		{"no run", `{}`, "no manifest"},
		{"text after it", `{"manifest":{"go":"go1.26"}} x`, "text after the end"},
		{"a cut file", pack(`{"manifest":{"go":"go1.26"}}`)[:30], "unexpected EOF"},
		{"a matrix of another size", `{"manifest":{"go":"go1.26"},"agreement":[{"names":["a","b"],"same":[[1]],"kappa":[[1]]}]}`, "matrix of 2 functions"},
		{"a ragged matrix", `{"manifest":{"go":"go1.26"},"avalanche":[{"name":"x","flips":[[1],[1,2]]}]}`, "avalanche of x"},
		{"many bits", pack(`{"manifest":{"go":"go1.26"},"collisions":[{"name":"x","bits":99,"keys":1}]}`), "99 bits"},
		{"no bits", `{"manifest":{"go":"go1.26"},"fpr":[{"name":"x","m":0,"k":1,"n":1}]}`, "m = 0"},
	} {
		if _, err := ReadResults(strings.NewReader(tt.text)); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.says)
		}
	}
}

func TestShorten(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"a":0.12345678949,"b":[1,-2.5,1e-07,123456789012]}`, `{"a":0.12345679,"b":[1,-2.5,1e-07,123456789012]}`},
		{`{"0.1234567890123":"0.1234567890123 \" 0.1234567890123"}`, `{"0.1234567890123":"0.1234567890123 \" 0.1234567890123"}`},
		{`"`, `"`}, {`"\"`, `"\"`}, {`1.`, `1`}, {``, ``},
	} {
		if got := string(shorten([]byte(c.text))); got != c.want {
			t.Errorf("%s: %s, want %s", c.text, got, c.want)
		}
	}
}

// FuzzReadResults: whatever is read can be shown.
func FuzzReadResults(f *testing.F) {
	var out bytes.Buffer
	if err := JSON(&out, &hashlab.Report{Manifest: hashlab.Manifest{Go: "go1.26"}, FPR: fixture().FPR[:2], Agreement: fixture().Agreement[:1]}); err != nil {
		f.Fatal(err)
	}
	f.Add(out.Bytes())
	f.Fuzz(func(t *testing.T, text []byte) {
		if r, err := ReadResults(bytes.NewReader(text)); err == nil {
			textOf(t, r, 80)
		}
	})
}
