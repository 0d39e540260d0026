package page

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"spamgate/internal/chart"
	"spamgate/internal/hashlab"
)

// rateDots draws a family's rates. Each load has a band of the same width, with
// the corpora side by side: their rates are nearly equal, and on an axis of
// numbers they would cover each other.
type rateDots struct {
	line
	loads  []float64          // of the bands, rising
	series [][]hashlab.FPRRow // of each corpus
}

func newRateDots(rows []hashlab.FPRRow, l line, corpora []string) rateDots {
	d := rateDots{line: l}
	for _, corpus := range corpora {
		points := pointsOf(rows, l, corpus)
		d.series = append(d.series, points)
		for _, f := range points {
			if d.band(f) < 0 {
				d.loads = append(d.loads, load(f))
			}
		}
	}
	slices.Sort(d.loads)
	return d
}

// band returns the number of a row's band, or -1.
func (d rateDots) band(f hashlab.FPRRow) int {
	return slices.IndexFunc(d.loads, func(x float64) bool { return sameLoad(x, load(f)) })
}

// formula returns the textbook's rate at a load. At load 1 half of the bits are
// set.
func (d rateDots) formula(load float64) float64 {
	return math.Pow(-math.Expm1(-load*math.Ln2), float64(d.k))
}

// bounded reports whether a row has only an upper bound, since it has no hits.
func bounded(f hashlab.FPRRow) bool { return f.Hits == 0 || f.Rate.Low <= 0 }

// decades returns the powers of ten that enclose all measured rates. The formula
// adds at most one decade below them: with few keys it is tiny, and would leave
// little space for the rest.
func (d rateDots) decades() (low, high int) {
	least, most := 1.0, 0.0
	for _, points := range d.series {
		for _, f := range points {
			most = max(most, f.Rate.High)
			if bounded(f) {
				least = min(least, f.Rate.High)
			} else {
				least = min(least, f.Rate.Low)
			}
		}
	}
	low = int(math.Floor(math.Log10(least)))
	for _, x := range d.loads {
		most = max(most, d.formula(x))
		if d.formula(x) < math.Pow10(low) && d.formula(x) >= math.Pow10(low-1) {
			low--
			break
		}
	}
	return low, max(min(0, int(math.Ceil(math.Log10(most)))), low+1)
}

// Plot implements plot.Plotter.
func (d rateDots) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for i := 1; i < len(d.loads); i += 2 { // every second band is shaded
		c.FillPolygon(color.Gray{Y: 0xF3}, []vg.Point{{X: x(float64(i)), Y: c.Min.Y}, {X: x(float64(i + 1)), Y: c.Min.Y}, {X: x(float64(i + 1)), Y: c.Max.Y}, {X: x(float64(i)), Y: c.Max.Y}})
	}
	for _, tick := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		if tick.Label != "" {
			c.StrokeLine2(chart.Guide(), c.Min.X, y(tick.Value), c.Max.X, y(tick.Value))
		}
	}
	for i, load := range d.loads {
		if position := d.formula(load); position >= p.Y.Min {
			c.StrokeLine2(formulaLine(), x(float64(i)+0.03), y(position), x(float64(i)+0.97), y(position))
		}
	}
	step := min(0.16, 0.84/float64(len(d.series)))
	for i, points := range d.series {
		m := mark(i)
		m.radius = min(m.radius, 0.46*(x(step)-x(0)))
		line := draw.LineStyle{Color: m.colour, Width: vg.Points(1.2)}
		for _, f := range points {
			length := x(float64(d.band(f)) + 0.5 + step*(float64(i)-float64(len(d.series)-1)/2))
			if bounded(f) { // an arrow downwards: the rate may be anything less
				top := y(f.Rate.High)
				tip := top - vg.Points(11)
				c.StrokeLine2(line, length, top, length, tip)
				c.StrokeLines(line, []vg.Point{{X: length - 2, Y: tip + 2.5}, {X: length, Y: tip}, {X: length + 2, Y: tip + 2.5}})
				m.hollow = true
				m.draw(c, vg.Point{X: length, Y: top})
				m.hollow = false
				continue
			}
			c.StrokeLine2(line, length, y(f.Rate.Low), length, y(f.Rate.High))
			m.draw(c, vg.Point{X: length, Y: y(f.Rate.Value)})
		}
	}
}

// formulaLine returns the style of the formula's lines.
func formulaLine() draw.LineStyle {
	return draw.LineStyle{Color: grey, Width: vg.Points(1.2), Dashes: []vg.Length{4, 2}}
}

// ratesLegend draws the marks of the corpora, for all pictures of rates.
func ratesLegend(corpora []string) (Picture, error) {
	p := chart.New("False positive rate of each family", "", "")
	p.HideAxes()
	key := legend{entries: []entry{{"formula", func(c draw.Canvas, point vg.Point) {
		c.StrokeLine2(formulaLine(), point.X-7, point.Y, point.X+7, point.Y)
	}}}}
	for i, corpus := range corpora {
		key.entries = append(key.entries, entry{short(corpus, 18), mark(i).draw})
	}
	const width = 400
	height := key.add(p, width)
	picture, err := drawPicture(p, width, height+40, "fpr-legend", "")
	picture.Wide = true
	return picture, err
}

// picture draws the rates of a family for each number of keys, between two powers
// of ten.
func (d rateDots) picture(low, high int) (Picture, error) {
	p := chart.New(short(d.line.String(), 34), "keys, as part of the capacity", "")
	p.Add(d)
	var across plot.ConstantTicks
	for i, x := range d.loads {
		across = append(across, plot.Tick{Value: float64(i) + 0.5, Label: fmt.Sprintf("%.0f%%", 100*x)})
	}
	p.X.Tick.Marker, p.X.Tick.Length = across, 0
	p.X.Min, p.X.Max = 0, float64(len(d.loads))
	chart.LogScale(&p.Y, low, high)
	return drawPicture(p, 260, 175, fmt.Sprintf("fpr-%s-%d", d.Name, d.k), "")
}
