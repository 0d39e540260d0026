package render

import (
	"strings"
	"testing"

	"spamgate/internal/hashlab"
)

// TestAgreementOfControls: beside the families' pairs stand those of both controls,
// over all corpora, which tell how far from 0 chance alone goes.
func TestAgreementOfControls(t *testing.T) {
	pair := func(family, corpus string, kappa float64) hashlab.Agreement {
		return hashlab.Agreement{
			Corpus: corpus, Family: family, Names: []string{"a", "b"},
			Same: [][]float64{{1, 0}, {0, 1}}, Kappa: [][]float64{{1, kappa}, {kappa, 1}},
		}
	}
	r := &hashlab.Report{Agreement: []hashlab.Agreement{
		pair("classic", "one", 0.07), pair(hashlab.Ideal, "one", -0.02), pair(hashlab.Ideal, "two", 0.01), pair(hashlab.XXH3, "one", 0.03),
	}}
	const chance = "The controls' pairs, by chance alone: "
	text := strings.Join(strings.Fields(textOf(t, r, TextWidth)), " ")
	want := chance + "ideal -0.020 to 0.010 and xxh3 0.030 to 0.030."
	if !strings.Contains(text, want) {
		t.Errorf("%s\nlacks %q", text, want)
	}
	r.Agreement = r.Agreement[:1]
	if text := textOf(t, r, TextWidth); strings.Contains(text, chance) {
		t.Errorf("no control, and told of them:\n%s", text)
	}
}
