package page

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"

	"spamgate/internal/hashlab"
)

// TestPicturesHaveAGround wants a white rectangle under all of each picture: the
// files are shown on dark pages, too.
func TestPicturesHaveAGround(t *testing.T) {
	all, err := Pictures(fixture(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		var left, top, width, height float64
		_, box, _ := strings.Cut(p.SVG, `viewBox="`)
		if _, err := fmt.Sscanf(box, "%g %g %g %g", &left, &top, &width, &height); err != nil {
			t.Fatalf("%s: no viewBox: %v", p.Name, err)
		}
		_, first, _ := strings.Cut(p.SVG, "<path ")
		first, _, _ = strings.Cut(first, "/>")
		var edges [4]float64
		if _, err := fmt.Sscanf(first, `d="M0,0L%g,0L%g,%gL0,%gZ"`, &edges[0], &edges[1], &edges[2], &edges[3]); err != nil {
			t.Fatalf("%s begins with %s", p.Name, first)
		}
		if !strings.Contains(first, "fill:#FFFFFF") || max(math.Abs(edges[1]-width), math.Abs(edges[2]-height)) > 0.01 {
			t.Errorf("%s, %g × %g, begins with %s", p.Name, width, height, first)
		}
	}
}

// TestPicturesFitPhones wants pictures as narrow as a phone, and a hint at those
// that have too many columns for it.
func TestPicturesFitPhones(t *testing.T) {
	r := fixture(t)
	all, err := Pictures(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.Broad() {
			t.Errorf("%s needs %d pixels, and a phone has %d", p.Name, p.Least(), phone)
		}
	}
	const hint = `class="swipe"`
	if strings.Contains(written(t, r), hint) {
		t.Error("a hint to swipe where nothing has to be")
	}
	m := newMatrix("many columns", make([]string, 1), make([]string, 30))
	m.text, m.colour = func(x float64) string { return "1.00" }, byPart
	m.cells[0][0] = 1
	if p, err := m.picture("many", ""); err != nil || !p.Broad() {
		t.Errorf("30 columns need %d pixels, and are not broad; %v", p.Least(), err)
	}
	hashes := strings.Fields("RS JS PJW ELF BKDR SDBM DJB DEK BP FNV AP")
	m = newMatrix("the classic hashes", hashes, hashes)
	m.text, m.colour = func(x float64) string { return "-0.01" }, byPart
	m.cells[0][0] = -0.01
	if p, err := m.picture("kappa", ""); err != nil || p.Least() > 310 {
		t.Errorf("eleven hashes need %d pixels: on a phone their numbers are hard to read; %v", p.Least(), err)
	}
	first := r.FPR[0]
	for i := range 30 {
		f := first
		f.Corpus = fmt.Sprint("corpus-", i)
		r.FPR = append(r.FPR, f)
	}
	if !strings.Contains(written(t, r), hint) {
		t.Error("no hint at a picture of 32 columns")
	}
}

// TestMarksDiffer wants marks that differ in both colour and shape from those
// beside them, and none twice in what the legend has room for.
func TestMarksDiffer(t *testing.T) {
	seen := map[string]int{}
	for i := range 7 * len(shapes) {
		g := mark(i)
		shape := fmt.Sprint(g.outline(vg.Point{}))
		look := fmt.Sprint(g.colour, shape)
		if before, ok := seen[look]; ok {
			t.Errorf("mark %d looks like mark %d", i, before)
		}
		seen[look] = i
		if next := mark(i + 1); next.colour == g.colour || fmt.Sprint(next.outline(vg.Point{})) == shape {
			t.Errorf("marks %d and %d are alike", i, i+1)
		}
	}
}

// TestRateDots wants a band for each load, sizes of the same load in one, and
// powers of ten that hold all limits.
func TestRateDots(t *testing.T) {
	row := func(corpus string, m uint64, n int, hits uint64, low, value, high float64) hashlab.FPRRow {
		return hashlab.FPRRow{Corpus: corpus, Subject: hashlab.Subject{Name: "x", Kind: hashlab.KindFamily}, M: m, K: 4, N: n, Hits: hits, Rate: hashlab.Interval{Value: value, Low: low, High: high}}
	}
	rows := []hashlab.FPRRow{
		row("a", 1<<16, 11356, 9, 0.05, 0.06, 0.07),
		row("a", 1<<16, 5678, 9, 0.006, 0.007, 0.008),
		row("b", 1<<17, 22713, 9, 0.05, 0.06, 0.2), // half a key off the load of a
		row("b", 1<<17, 2000, 0, 0, 0, 3e-6),
	}
	d := newRateDots(rows, line{rows[0].Subject, 4}, []string{"a", "b"})
	if got := fmt.Sprintf("%.2f", d.loads); got != "[0.09 0.50 1.00]" {
		t.Errorf("loads %s", got)
	}
	if got := []int{d.band(rows[0]), d.band(rows[1]), d.band(rows[2]), d.band(rows[3])}; !slices.Equal(got, []int{2, 1, 2, 0}) {
		t.Errorf("bands %v", got)
	}
	if got := d.formula(1); math.Abs(got-1./16) > 1e-12 {
		t.Errorf("the formula at the capacity is %g, want 2^-4", got)
	}
	if low, high := d.decades(); low != -6 || high != 0 {
		t.Errorf("from 10^%d to 10^%d, want -6 and 0", low, high)
	}
	// The formula's 2^-40 and less is far below what four keys in a million tell.
	d.k = 40
	if low, _ := d.decades(); low != -6 {
		t.Errorf("the formula takes the picture down to 10^%d", low)
	}
	rows[3].Rate.High = 0 // nothing to draw
	if p, err := newRateDots(rows[3:], line{rows[3].Subject, 4}, []string{"b"}).picture(-6, 0); err != nil || p.SVG == "" {
		t.Errorf("a picture of nothing: %v", err)
	}
}

// TestRatePictureShowsAll wants a mark for each row.
func TestRatePictureShowsAll(t *testing.T) {
	r := fixture(t)
	corpora := hashlab.Distinct(r.FPR, corpusOf)
	for _, l := range lines(r.FPR) {
		d := newRateDots(r.FPR, l, corpora)
		p, err := d.picture(d.decades())
		if err != nil {
			t.Fatal(err)
		}
		for i, corpus := range corpora {
			want := 0
			for _, f := range pointsOf(r.FPR, l, corpus) {
				if bounded(f) {
					want += 3 // an edge, and the arrow's two lines
				} else {
					want += 2 // a filled mark and a bar
				}
			}
			red, green, blue, _ := mark(i).colour.RGBA()
			colour := fmt.Sprintf("#%02X%02X%02X", red>>8, green>>8, blue>>8)
			if got := strings.Count(p.SVG, colour); got != want {
				t.Errorf("%s over %s: %d things in %s, want %d", l, corpus, got, colour, want)
			}
		}
	}
}

// TestLegendFits wants each entry of the legend inside its picture, also with so
// many that it takes several lines, and in none of the pictures that it explains.
func TestLegendFits(t *testing.T) {
	r := fixture(t)
	for i := range 12 {
		f := r.FPR[0]
		f.Corpus = fmt.Sprint("a long name ", i)
		r.FPR = append(r.FPR, f)
	}
	corpora := hashlab.Distinct(r.FPR, corpusOf)
	p, err := ratesLegend(corpora)
	if err != nil {
		t.Fatal(err)
	}
	var width, height float64
	_, box, _ := strings.Cut(p.SVG, `viewBox="`)
	if _, err := fmt.Sscanf(box, "0 0 %g %g", &width, &height); err != nil {
		t.Fatal(err)
	}
	lines := map[float64]int{}
	for _, corpus := range corpora[2:] {
		before, _, ok := strings.Cut(p.SVG, ">"+short(corpus, 18)+"<")
		var x, y float64
		element := before[strings.LastIndex(before, "<text"):]
		if _, err := fmt.Sscanf(element[strings.Index(element, ` x="`)+1:], `x="%g"`, &x); !ok || err != nil {
			t.Fatalf("%q: %v in %s", corpus, err, element)
		}
		if _, err := fmt.Sscanf(element[strings.Index(element, ` y="`)+1:], `y="%g"`, &y); err != nil {
			t.Fatal(err)
		}
		// The backend has y grow upwards but in texts, where it is negative.
		if x < 0 || x > width-20 || -y < 0 || -y > height-10 {
			t.Errorf("%q is at %g, %g in a picture of %g × %g", corpus, x, -y, width, height)
		}
		lines[y]++
	}
	if len(lines) < 3 {
		t.Errorf("%d corpora in %d lines", len(corpora), len(lines))
	}
}

// TestOverviewHasLimits wants the limits below each number of the heat map, and no
// colour where they include 1.
func TestOverviewHasLimits(t *testing.T) {
	row := func(name string, low, value, high float64) hashlab.FPRRow {
		return hashlab.FPRRow{Corpus: "a", Subject: hashlab.Subject{Name: name, Kind: hashlab.KindFamily}, M: 1 << 16, K: 4, N: 11356,
			Hits: 500, Trials: 100000, Formula: 0.005, Rate: hashlab.Interval{Low: low, Value: value, High: high}}
	}
	s := ratesSection(&hashlab.Report{FPR: []hashlab.FPRRow{row("even", 0.0049, 0.0052, 0.0055), row("uneven", 0.01, 0.0105, 0.011)}})
	if s.err != nil {
		t.Fatal(s.err)
	}
	svg := s.Figures[0].Pictures[0].SVG
	for _, want := range []string{">1.04<", ">0.98–1.10<", ">2.10<", ">2.00–2.20<"} {
		if strings.Count(svg, want) != 1 {
			t.Errorf("the heat map lacks %s", want)
		}
	}
	colours := map[string]bool{}
	for _, part := range strings.Split(svg, "fill:#")[1:] {
		colours[part[:6]] = true
	}
	if len(colours) != 2 {
		t.Errorf("colours %v, want white and that of the second family", colours)
	}
}

// TestLead wants a row for each family that has enough false positives, a mark for
// its typical and its worst rate, and the name of the worst corpus where a family
// does not keep to the formula.
func TestLead(t *testing.T) {
	row := func(name, corpus string, times float64) hashlab.FPRRow {
		return hashlab.FPRRow{Corpus: corpus, Subject: hashlab.Subject{Name: name, Kind: hashlab.KindFamily}, M: 1 << 16, K: 4, N: 11356, Filters: 20,
			Hits: uint64(5000 * times), Trials: 1000000, Formula: 0.005, EffectiveK: hashlab.Interval{Value: 4 / times},
			Rate: hashlab.Interval{Low: 0.00495 * times, Value: 0.005 * times, High: 0.00505 * times}}
	}
	r := &hashlab.Report{FPR: []hashlab.FPRRow{row("good", "first", 1), row("good", "second", 1.004), row("bad", "first", 1.2), row("bad", "second", 3)}}
	s, err := inShort(r)
	if err != nil || len(s.Figures) != 1 {
		t.Fatalf("%d pictures, %v", len(s.Figures), err)
	}
	svg := s.Figures[0].Pictures[0].SVG
	good, bad := strings.Index(svg, ">good<"), strings.Index(svg, ">bad<")
	if good < 0 || bad < 0 || strings.Count(svg, ">second<") != 1 || !strings.Contains(svg, ">over first<") {
		t.Errorf("names are missing: %s", svg)
	}
	if s, err := inShort(new(hashlab.Report)); err != nil || len(s.Figures) != 0 {
		t.Errorf("a report of nothing has a picture, %v", err)
	}
}

// TestMessagesPicture wants a number of each row, and no colour where its limits
// hold what the keys promise.
func TestMessagesPicture(t *testing.T) {
	r := fixture(t)
	plain, err := messagesPicture(r.Messages)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(plain.SVG, ">0.97<"); got != len(r.Messages) {
		t.Errorf("0.97 stands there %d times, want %d", got, len(r.Messages))
	}
	r.Messages[0].Rate = hashlab.Interval{Value: 0.0836, Low: 0.08, High: 0.09} // four times
	r.Messages[1].Hits = 0
	coloured, err := messagesPicture(r.Messages)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(coloured.SVG, ">4.00<") || strings.Count(coloured.SVG, ">0.97<") != len(r.Messages)-2 {
		t.Error("the numbers do not follow the report")
	}
	choose := func(p Picture) (colours []string) {
		for _, part := range strings.Split(p.SVG, "fill:#")[1:] {
			if !slices.Contains(colours, part[:6]) {
				colours = append(colours, part[:6])
			}
		}
		return colours
	}
	if got := choose(plain); !slices.Equal(got, []string{"FFFFFF"}) {
		t.Errorf("chance alone has the colours %v", got)
	}
	if got := choose(coloured); len(got) != 2 {
		t.Errorf("one outlier has the colours %v, want white and its own", got)
	}
}

// TestSpeedPictureKnowsNoMost wants the slowest run to change nothing: on a busy
// machine it takes many times as long as the rest.
func TestSpeedPictureKnowsNoMost(t *testing.T) {
	r := fixture(t)
	first := speedSection(r)
	if first.err != nil {
		t.Fatal(first.err)
	}
	for i := range r.Speed {
		r.Speed[i].NsMost *= 100
	}
	second := speedSection(r)
	if second.err != nil || !slices.Equal(first.Figures[0].Pictures, second.Figures[0].Pictures) {
		t.Errorf("the slowest run changes the picture, %v", second.err)
	}
	for i := range r.Speed {
		r.Speed[i].NsLeast /= 2
	}
	third := speedSection(r)
	if third.err != nil || slices.Equal(first.Figures[0].Pictures, third.Figures[0].Pictures) {
		t.Errorf("the fastest run changes nothing, %v", third.err)
	}
}
