package summary

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"spamgate/internal/hashlab"
)

// fixture reads the made-up report that package render's tests write.
func fixture(t *testing.T) *hashlab.Report {
	t.Helper()
	text, err := os.ReadFile("../render/testdata/report.json")
	if err != nil {
		t.Fatal(err)
	}
	r := new(hashlab.Report)
	if err := json.Unmarshal(text, r); err != nil {
		t.Fatal(err)
	}
	return r
}

func limits(value, low, high float64) hashlab.Interval {
	return hashlab.Interval{Value: value, Low: low, High: high}
}

func subject(name, kind string) hashlab.Subject { return hashlab.Subject{Name: name, Kind: kind} }

// finding returns a report's sentence of a name.
func finding(r *hashlab.Report, name string) (hashlab.Finding, bool) {
	all := Of(r)
	i := slices.IndexFunc(all, func(f hashlab.Finding) bool { return f.Name == name })
	if i < 0 {
		return hashlab.Finding{}, false
	}
	return all[i], true
}

// TestSummaryFollowsNumbers changes numbers of the fixture, and wants the
// sentence that they are in to change with them.
func TestSummaryFollowsNumbers(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after string // a part of the sentence; "" for no sentence
		holds         bool   // after
		change        func(*hashlab.Report)
	}{
		{"interrupted", "", "interrupted", true, func(r *hashlab.Report) { r.Interrupted = true }},
		{"control", "in 4 of 4 comparisons (each corpus, k and size of filter is one). By chance one in twenty misses; fewer than 2 would be a reason not to trust this run.", "in 0 of 4 comparisons (each corpus, k and size of filter is one). By chance only one in twenty misses, so that at least 2 should agree.", false, func(r *hashlab.Report) {
			for i := range r.FPR {
				r.FPR[i].Rate.Low = r.FPR[i].Rate.High
			}
		}},
		{"control", "fewer than 2", "in 1 of 1 comparison (each corpus, k and size of filter is one). By chance one in twenty misses; so few comparisons cannot show an error.", true, func(r *hashlab.Report) {
			r.FPR = r.FPR[12:14]
		}},
		// Only the fullest row of a place counts, and only where there is enough to tell.
		{"control", "4 of 4", "3 of 4", true, func(r *hashlab.Report) { r.FPR[13].Rate.Low = r.FPR[13].Rate.High }},
		{"control", "4 of 4", "4 of 4", true, func(r *hashlab.Report) { r.FPR[1].Rate.Low = r.FPR[1].Rate.High }},
		{"control", "4 of 4", "2 of 2", true, func(r *hashlab.Report) {
			for i := range r.FPR {
				if r.FPR[i].K == 7 {
					r.FPR[i].Formula = 9 / float64(r.FPR[i].Trials)
				}
			}
		}},
		{"formula", "weighted: expect what the formula says, within 5%. Of the false positives that it predicts, the filters had 0.97 to 1.03 times as many (90% intervals; two one-sided tests). Each corpus alone shows the same", "xxxx: expect what the formula says", true, func(r *hashlab.Report) {
			for i := range r.FPR {
				if r.FPR[i].Name == "weighted" {
					r.FPR[i].Name = "xxxx"
				}
			}
		}},
		{"formula", "weighted: expect", "classic and weighted: no row has the 100 false positives", false, func(r *hashlab.Report) {
			for i := range r.FPR {
				r.FPR[i].Hits = 99
			}
		}},
		{"expect-fpr:classic", "its 11 functions act like 9.00 ideal ones, in filters that are 42% full instead of 49%. Worst over <script>&?[31m, a file.txt: 1.16 times the formula's, like 8.75 functions.", "its 11 functions act like 5.00 ideal ones", true, func(r *hashlab.Report) {
			for i := range r.FPR {
				r.FPR[i].EffectiveK.Value = 5
			}
		}},
		{"expect-fpr:classic", "over real expect a false positive rate of 4.30e-4 [4.09e-4, 4.52e-4] at 16.4 bits a key, 1.13 times", "8.61e-4 [8.18e-4, 9.04e-4] at 16.4 bits a key, 2.25 times", true, func(r *hashlab.Report) {
			for i := range r.FPR {
				f := &r.FPR[i]
				f.Rate = limits(2*f.Rate.Value, 2*f.Rate.Low, 2*f.Rate.High)
			}
		}},
		{"expect-fpr:classic", "up to 3.02 times as often as the formula says (<script>&?[31m, a file.txt, 32.8 bits a key)", "like 8.75 functions.", true, func(r *hashlab.Report) {
			r.FPR = slices.DeleteFunc(r.FPR, func(f hashlab.FPRRow) bool { return f.N < 8000 })
		}},
		{"expect-fpr:classic", "Worst over", "up to 2.62 times as often as the formula says (real, 32.8 bits a key)", true, func(r *hashlab.Report) {
			r.FPR = slices.DeleteFunc(r.FPR, func(f hashlab.FPRRow) bool { return f.Corpus != "real" })
		}},
		// An interval that contains 1, but is too wide to show that the rates are equal.
		{"formula", "weighted: expect", "", false, func(r *hashlab.Report) { widen(r, 0.3) }},
		{"formula-open", "", "weighted (1.00 [0.", false, func(r *hashlab.Report) { widen(r, 0.3) }},
		{"formula", "Each corpus alone", "Of the 2 pairs of a family and a corpus 0 show the same alone", true, func(r *hashlab.Report) { widen(r, 0.075) }},
		{"expect-fpr:weighted", "", "2.00 times", true, func(r *hashlab.Report) {
			for i := range r.FPR {
				f := &r.FPR[i]
				f.Hits *= 2
				f.Rate = limits(2*f.Rate.Value, 2*f.Rate.Low, 2*f.Rate.High)
			}
		}},
		{"scope", "at most 2^17 bits", "at most 2^20 bits", true, func(r *hashlab.Report) { r.FPR[0].M = 1 << 20 }},
		{"scope", "which --full measures", "", false, func(r *hashlab.Report) { r.FPR[0].FullSize = true }},
		{"scope", "classic", "", false, func(r *hashlab.Report) {
			r.FPR = slices.DeleteFunc(r.FPR, func(f hashlab.FPRRow) bool { return f.Name == "classic" })
		}},
		{"full-size:classic", "", "2^28 bits: a rate of 2.66e-6 with 4,000 keys, 2.62 times the formula's; a rate of", true, func(r *hashlab.Report) {
			for i := range r.FPR {
				r.FPR[i].FullSize = true
			}
		}},
		{"carry:classic", "2 of 4 functions carry it over all corpora: RS and PJW.", "3 of 4 functions carry it over all corpora: RS, PJW and BP.", true, func(r *hashlab.Report) {
			for i := range r.PassRates {
				r.PassRates[i].Rate = limits(0.5, 0.49, 0.51)
			}
		}},
		{"carry:classic", "Nothing is added over most corpora by ELF (always the same as PJW) and BP (lets 97% of absent keys pass)", "part of an ideal function's work over their worst corpus: BP (50%, real)", true, func(r *hashlab.Report) {
			r.PassRates[3].Rate, r.PassRates[3].Fill = limits(0.7, 0.69, 0.71), 0.49 // √0.49
			r.PassRates[11].Rate = limits(0.5, 0.49, 0.51)
		}},
		{"carry:classic", "carry it over all corpora", "3 of 4 functions carry it: RS, PJW and ELF. Others do only a part of an ideal function's work: BP (50%).", true, func(r *hashlab.Report) {
			r.PassRates, r.Agreement = r.PassRates[:4], nil
			r.PassRates[3].Rate = limits(0.7, 0.69, 0.71)
		}},
		// Noise is no reason to speak ill of a function.
		{"carry:classic", "and BP (lets 97% of absent keys pass)", "3 of 4 functions carry it: RS, PJW and BP.", true, func(r *hashlab.Report) {
			r.PassRates = r.PassRates[:4]
			r.PassRates[3].Rate = limits(0.6, 0.5, 0.7)
		}},
		{"carry:classic", "Nothing is added over most corpora", "Nothing is added by ELF", true, func(r *hashlab.Report) { r.PassRates = r.PassRates[:4] }},
		{"carry:classic", "carry", "none of 4 functions carries it", true, func(r *hashlab.Report) {
			for i := range r.PassRates {
				r.PassRates[i].Rate = limits(1, 0.99, 1)
			}
		}},
		{"carry", "weighted: every function", "", false, func(r *hashlab.Report) {
			for i := range r.PassRates {
				r.PassRates[i].Rate = limits(1, 0.99, 1)
			}
		}},
		{"pjw-is-elf", "one function under two names", "different functions: over real they gave the same index for 99% of the keys", false, func(r *hashlab.Report) {
			r.Agreement[0].Same[1][2] = 0.99
		}},
		{"pjw-is-elf", "one function", "", false, func(r *hashlab.Report) { r.Agreement = nil }},
		{"bp-collapse", "over real its 28 bits have 1,200 different values for 121,570 keys", "BP does not collapse here: it has at least 100%", false, func(r *hashlab.Report) {
			for i := range r.Collisions {
				r.Collisions[i].Collisions, r.Collisions[i].Distinct = 27, r.Collisions[i].Keys-27
			}
		}},
		{"messages", "had 0.97 times", "had 4.86 times", false, func(r *hashlab.Report) {
			for i := range r.Messages {
				r.Messages[i].Hits *= 5
			}
		}},
		{"uniformity", "in most tests by PJW and BP; in none by ideal and xxh3", "in most tests by BP; in some by PJW (1 of 2)", true, func(r *hashlab.Report) { r.Uniformity[0].PHolm = 0.06 }},
		{"uniformity", "by PJW and BP", "at least 0.1 beyond chance): in none by PJW, BP, ideal and xxh3.", false, func(r *hashlab.Report) {
			for i := range r.Uniformity {
				r.Uniformity[i].ExcessEffect = 0.09
			}
		}},
		{"avalanche", "with ideal and xxh3 only; not with PJW and BP", "Every hash", false, func(r *hashlab.Report) {
			for i := range r.Avalanche {
				r.Avalanche[i].MeanBias = 0.12
			}
		}},
		{"avalanche", "only", "No hash", true, func(r *hashlab.Report) {
			for i := range r.Avalanche {
				r.Avalanche[i].MeanBias = 0.13
			}
		}},
		{"worst-bit", "worst pair of bits of ideal and xxh3. Some bit of the key flips some bit of the value too often or too seldom (the bias in brackets, 1 is always or never) with PJW (1.00) and BP (1.00)",
			"of ideal. Each bit flips as it should, but two bits of the value flip together (bit independence criterion, the correlation in brackets) with xxh3 (0.08, bits 3 and 7). Some bit", true, func(r *hashlab.Report) {
				r.Avalanche[3].BICP = 0.01
			}},
		{"worst-bit", "too seldom", "of PJW, BP, ideal and xxh3 (p < 0.05 after Holm)", false, func(r *hashlab.Report) {
			for i := range r.Avalanche {
				r.Avalanche[i].WorstP, r.Avalanche[i].BICP = 0.06, 0.06
			}
		}},
		{"speed", "Fastest is classic: 23.1 ns", "Fastest is weighted (k = 11): 1.00 ns for its 11 indices of a key of 33 bytes; slowest classic", true, func(r *hashlab.Report) { r.Speed[3].NsMedian = 1 }},
		{"speed", "Fastest", "", false, func(r *hashlab.Report) { r.Speed = r.Speed[:2] }},
	} {
		r := fixture(t)
		f, ok := finding(r, c.name)
		if ok != (c.before != "") || !strings.Contains(f.Text, c.before) {
			t.Errorf("%s: before: %q, want %q", c.name, f.Text, c.before)
		}
		c.change(r)
		f, ok = finding(r, c.name)
		if ok != (c.after != "") || !strings.Contains(f.Text, c.after) || f.Holds != c.holds {
			t.Errorf("%s: after: %q, holds %t; want %q, %t", c.name, f.Text, f.Holds, c.after, c.holds)
		}
	}
}

// widen sets the limits of the rates that far from them, as a part.
func widen(r *hashlab.Report, by float64) {
	for i := range r.FPR {
		f := &r.FPR[i]
		f.Rate.Low, f.Rate.High = f.Rate.Value/(1+by), f.Rate.Value*(1+by)
	}
}

// TestSummaryOfNothing wants no sentence about what was not measured.
func TestSummaryOfNothing(t *testing.T) {
	if got := Of(new(hashlab.Report)); len(got) != 0 {
		t.Errorf("an empty report: %v", got)
	}
}

// TestLabel wants a family's k where it has several.
func TestLabel(t *testing.T) {
	r := &hashlab.Report{FPR: []hashlab.FPRRow{{Subject: subject("double", hashlab.KindFamily), K: 11}, {Subject: subject("double", hashlab.KindFamily), K: 7}, {Subject: subject("digest", hashlab.KindFamily), K: 11}}}
	for _, c := range []struct {
		name string
		k    int
		want string
	}{{"double", 11, "double (k = 11)"}, {"double", 7, "double (k = 7)"}, {"digest", 11, "digest"}} {
		if got := Label(r, c.name, c.k); got != c.want {
			t.Errorf("%s, %d: %q, want %q", c.name, c.k, got, c.want)
		}
	}
}

// TestChanceOfMisses compares with the binomial distribution worked out by hand.
func TestChanceOfMisses(t *testing.T) {
	for _, c := range []struct {
		n, misses int
		want      float64
	}{
		{10, 0, 1},
		{10, 1, 1 - 0.5987369392383787}, // 0.95^10
		{2, 2, 0.0025},                  // 0.05²
		{3, 2, 3*0.05*0.05*0.95 + 0.05*0.05*0.05}, // two or three
		{20, 20, 0}, // as good as never
	} {
		if got := chanceOfMisses(c.n, c.misses); got < c.want-1e-12 || got > c.want+1e-12 {
			t.Errorf("%d of %d: %g, want %g", c.misses, c.n, got, c.want)
		}
	}
}
