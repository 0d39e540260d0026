package render

import (
	"bytes"
	"strings"
	"testing"

	"spamgate/internal/hashlab"
)

// TestFNVLabel checks that tables do not call the classic FNV by the name of FNV-1, and that
// JSON and CSV keep its name.
func TestFNVLabel(t *testing.T) {
	r := &hashlab.Report{Collisions: []hashlab.Collision{
		{Subject: hashlab.Subject{Name: "FNV", Kind: hashlab.KindHash}, Corpus: "x", Bits: 28},
		{Subject: hashlab.Subject{Name: "FNV-1a", Kind: hashlab.KindHash}, Corpus: "x", Bits: 28},
		{Subject: hashlab.Subject{Name: "FNV", Kind: hashlab.KindFamily}, Corpus: "x", Bits: 28}, // somebody's own
	}}
	var out, csv, json bytes.Buffer
	if err := Text(&out, r, 80); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\n  FNV (basis as prime) ", "\n  FNV-1a ", "\n  FNV  "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	if err := CSV(&csv, r); err != nil {
		t.Fatal(err)
	}
	if err := JSON(&json, r); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(csv.String()+json.String(), "basis") || !strings.Contains(csv.String(), ",FNV,hash,") {
		t.Errorf("%s%s", &csv, &json)
	}
}
