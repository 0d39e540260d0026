package page

import (
	"fmt"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"spamgate/internal/chart"
	"spamgate/internal/hashlab"
	"spamgate/internal/hashlab/format"
	"spamgate/internal/hashlab/summary"
)

// inShort returns the beginning of the page: its one picture.
func inShort(r *hashlab.Report) (section, error) {
	s := section{ID: "short"}
	if all := summary.Overviews(r); len(all) > 0 {
		s.add(leadPicture(all))
	}
	return s, s.err
}

// lead draws for each family how many times the formula's its rate is, on a
// logarithmic scale: over the first corpus, and where it is worst.
type lead []summary.Overview

// ratio returns how many times the formula's a rate is, with its limits.
func ratio(f hashlab.FPRRow) hashlab.Interval {
	return hashlab.Interval{Value: f.Rate.Value / f.Formula, Low: f.Rate.Low / f.Formula, High: f.Rate.High / f.Formula}
}

// doublings returns the number of times that 1 must be doubled to be x, which may
// be a fraction or negative.
func doublings(x float64) float64 { return math.Log2(x) }

// Plot implements plot.Plotter.
func (l lead) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, tick := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
		style := chart.Guide()
		if tick.Value == 0 {
			style = formulaLine()
		}
		c.StrokeLine2(style, x(tick.Value), c.Min.Y, x(tick.Value), c.Max.Y)
	}
	words := p.X.Tick.Label
	words.XAlign, words.YAlign = draw.XLeft, draw.YCenter
	typical, worst := leadMarks()
	for i, o := range l {
		length := y(float64(len(l)-i) - 0.5)
		for _, line := range []struct {
			mark glyph
			hashlab.FPRRow
		}{{worst, o.Worst}, {typical, o.Typical}} {
			r := ratio(line.FPRRow)
			c.StrokeLine2(draw.LineStyle{Color: line.mark.colour, Width: vg.Points(1.2)}, x(doublings(r.Low)), length, x(doublings(r.High)), length)
			line.mark.draw(c, vg.Point{X: x(doublings(r.Value)), Y: length})
		}
		if !o.AsFormula && !o.Open {
			c.FillText(words, vg.Point{X: x(doublings(ratio(o.Worst).High)) + vg.Points(5), Y: length + lift(words)}, short(o.Worst.Corpus, 16))
		}
	}
}

// leadMarks returns the marks of the first corpus and of the worst rows.
func leadMarks() (typical, worst glyph) {
	typical, worst = mark(0), mark(1)
	worst.corners, worst.turn = 4, 0 // a diamond
	return typical, worst
}

// leadPicture draws the families below each other.
func leadPicture(all []summary.Overview) (Picture, error) {
	p := chart.New("How often the filter is wrong, in times of the textbook's promise", "times as often as promised (1: as promised)", "")
	typical, worst := leadMarks()
	key := legend{entries: []entry{
		{"over " + short(all[0].Typical.Corpus, 20), typical.draw},
		{"over the worst kind of keys", worst.draw},
	}}
	p.Add(lead(all))
	var down, across plot.ConstantTicks
	var labels, names vg.Length // widths of the longest row's label, and of the longest corpus's name
	low, high := 0.0, 1.0
	for i, o := range all {
		label := short(o.Label, 22)
		if o.Ns > 0 {
			label += fmt.Sprintf(", %s ns", format.Digits(o.Ns, 3))
		}
		down = append(down, plot.Tick{Value: float64(len(all)-i) - 0.5, Label: label})
		labels, names = max(labels, p.Y.Tick.Label.Width(label)), max(names, p.X.Tick.Label.Width(short(o.Worst.Corpus, 16)))
		for _, f := range []hashlab.FPRRow{o.Typical, o.Worst} {
			r := ratio(f)
			low, high = min(low, doublings(r.Low)), max(high, doublings(r.High))
		}
	}
	low, high = math.Floor(low*2)/2, math.Ceil(high*2)/2
	const width = 400
	names += vg.Points(12) // a corpus's name stands right of its mark
	high += (high - low) * float64(names/max(names, width-labels-names-vg.Points(24)))
	step := math.Ceil((high - low) / 8)
	for e := math.Ceil(low/step) * step; e < high; e += step {
		across = append(across, plot.Tick{Value: e, Label: strconv.FormatFloat(math.Exp2(e), 'f', -1, 64)})
	}
	p.Y.Tick.Marker, p.Y.Tick.Length, p.Y.LineStyle.Width = down, 0, 0
	p.X.Tick.Marker = across
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = low, high, 0, float64(len(all))
	band := key.add(p, width-150)
	picture, err := drawPicture(p, width, vg.Length(80+22*len(all))+band, "overview", "A row is a family of hashes: at 1 the filter is wrong as often as the textbook promises, at 2 twice as often. "+
		"Bars are 95% limits. The worst kind of keys is named where a family breaks the promise; ns is the time to hash an address.")
	picture.Wide = true
	return picture, err
}
