package header

import (
	"fmt"
	"strings"
	"testing"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// signatureCases are header sections, and what Signatures finds: the domains that are
// pending, or why a signature is malformed, and the number of From fields.
var signatureCases = []struct{ section, want string }{
	{"", "0"},
	{"From: a@b.example\r\n", "1"},
	{"DKIM-Signature: v=1; d=b.example; b=x\r\nFrom: a@b.example\r\n", "b.example 1"},
	{"dkim-signature : d=b.example\r\n", "b.example 0"},
	{"DKIM-Signature:d = B.Example\r\n", "b.example 0"},
	{"DKIM-Signature: v=1;\r\n\td=b.\r\n example; h=from\r\n", "b.example 0"}, // folded within a value
	{"DKIM-Signature\r\n : d=b.example\r\n", "b.example 0"},                   // folded before the colon
	{"DKIM-Signature: d=b.example.\r\n", "b.example 0"},
	{"DKIM-Signature: d=bücher.example\r\n", "xn--bcher-kva.example 0"},
	{"DKIM-Signature: d=b.example;; a=b;\r\n", "b.example 0"},
	{"DKIM-Signature: d=b.example; d=c.example\r\n", "(a tag twice) 0"},
	{"DKIM-Signature: d=b.example; d =c.example\r\n", "(a tag twice) 0"},
	{"DKIM-Signature: d=b.example; what\r\n", "(a tag without =) 0"},
	{"DKIM-Signature: v=1\r\n", "(no domain (d=)) 0"},
	{"DKIM-Signature: D=b.example\r\n", "(no domain (d=)) 0"}, // names of tags have a case
	{"DKIM-Signature: d=\r\n", "(no valid domain (d=)) 0"},
	{"DKIM-Signature: d=b..example\r\n", "(no valid domain (d=)) 0"},
	{"DKIM-Signature: d=[192.0.2.1]\r\n", "(no valid domain (d=)) 0"},
	{"DKIM-Signature: d=b.example@c.example\r\n", "(no valid domain (d=)) 0"},
	{"DKIM-Signature\r\n", "(no domain (d=)) 0"},
	{"X-DKIM-Signature: d=b.example\r\nDKIM-Signatures: d=b.example\r\n", "0"},
	{"Subject: x\r\n DKIM-Signature: d=b.example\r\n", "0"},     // a line of the subject
	{"D\u212aIM-Signature: d=b.example\r\n", "0"},               // the sign for Kelvin
	{"DKIM-Signature: d=b.example\nFrom: a@b\n", "b.example 1"}, // bare line feeds
	{strings.Repeat("DKIM-Signature: d=b.example\r\n", 9), strings.Repeat("b.example ", verdict.MaxSignatures) + "0"},

	// Readers may take each of these for a From field.
	{"From: a@b\r\nFROM: a@c\r\n", "2"},
	{"From: a@b\r\nFrom\t : a@c\r\n", "2"},
	{"From: a@b\r\nFrom\r\n : a@c\r\n", "3"}, // the line without a colon is one more
	{"From: a@b\r\nFrom\v: a@c\r\n", "2"},
	{"From: a@b\r\nFrom\u00a0: a@c\r\n", "2"},
	{"From: a@b\r\n\u2003From: a@c\r\n", "2"},
	{"From: a@b\r\nno colon <a@c>\r\n", "2"},
	{"no colon\r\n From: a@b\r\n", "1"},
	{" From: a@b\r\n", "1"},
	{"Resent-From: a@b\r\nX-From: a@c\r\nFrom a@d\r\nFrom: a@e\r\n", "1"},
}

// sayFound returns what Signatures finds in the form of signatureCases.
func sayFound(section string) string {
	signatures, from := Signatures([]byte(section))
	var b strings.Builder
	for _, s := range signatures {
		if s.State == verdict.ProofPending {
			b.WriteString(s.Domain + " ")
		} else {
			fmt.Fprintf(&b, "(%s) ", s.Why)
		}
	}
	return fmt.Sprint(b.String(), from)
}

func TestSignatures(t *testing.T) {
	for _, c := range signatureCases {
		if got := sayFound(c.section); got != c.want {
			t.Errorf("%q: %s, want %s", c.section, got, c.want)
		}
	}
}

func FuzzSignatures(f *testing.F) {
	for _, c := range signatureCases {
		f.Add([]byte(c.section))
	}
	f.Fuzz(func(t *testing.T, section []byte) {
		signatures, from := Signatures(section)
		if len(signatures) > verdict.MaxSignatures || from < 0 {
			t.Errorf("%d signatures, %d From fields", len(signatures), from)
		}
		for _, s := range signatures {
			domain, err := sender.NormalizeDomain(s.Domain)
			switch {
			case s.State == verdict.ProofPending && (err != nil || domain != s.Domain || s.Why != ""):
				t.Errorf("%+v is pending: %v", s, err)
			case s.State != verdict.ProofPending && (s.State != verdict.NotProven || s.Why == "" || s.Domain != ""):
				t.Errorf("%+v", s)
			}
		}
		next := 0 // fields are the whole section
		for start, end := range Fields(section) {
			if start != next || end <= start {
				t.Fatalf("a field from %d to %d after one to %d", start, end, next)
			}
			next = end
		}
		if next != len(section) {
			t.Errorf("fields end at %d of %d", next, len(section))
		}
		for _, field := range SignatureFields(section) {
			if !strings.Contains(strings.ToLower(string(section[field.Start:field.End])), "dkim-signature") {
				t.Errorf("%q is a signature", section[field.Start:field.End])
			}
		}
	})
}
