package hashlab

import (
	"strings"
	"testing"
)

// TestAgreementOfControls: beside the families' pairs stand those of both controls,
// over all corpora, which tell how far from 0 chance alone goes.
func TestAgreementOfControls(t *testing.T) {
	pair := func(family, corpus string, kappa float64) Agreement {
		return Agreement{
			Corpus: corpus, Family: family, Names: []string{"a", "b"},
			Same: [][]float64{{1, 0}, {0, 1}}, Kappa: [][]float64{{1, kappa}, {kappa, 1}},
		}
	}
	r := &Report{Agreement: []Agreement{
		pair("classic", "one", 0.07), pair(idealName, "one", -0.02), pair(idealName, "two", 0.01), pair(xxh3Name, "one", 0.03),
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
