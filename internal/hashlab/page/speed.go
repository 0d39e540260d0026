package page

import (
	"fmt"
	"image/color"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"spamgate/internal/chart"
	"spamgate/internal/hashlab"
	"spamgate/internal/hashlab/format"
	"spamgate/internal/hashlab/summary"
)

func speedSection(r *hashlab.Report) section {
	s := section{ID: "speed", Title: "Speed", About: "Nanoseconds to hash a key: the median of the runs. These numbers differ from run to run and from machine to machine."}
	s.Tables = append(s.Tables, table(numbers, []string{"subject", "what", "k", "key bytes", "runs", "ns a key", "least", "most", "bytes a cycle"}, r.Speed, func(f hashlab.SpeedRow) []string {
		return []string{f.Label(), f.What, fmt.Sprint(f.K), fmt.Sprint(f.KeyBytes), fmt.Sprint(f.Runs), format.Rate(f.NsMedian), format.Rate(f.NsLeast), format.Rate(f.NsMost), fmt.Sprintf("%.3g", f.BytesPerCycle)}
	}))
	// Bars compare only if the key length is the same, and the number of values is
	// one for all or many for all.
	length := r.Speed[0].KeyBytes
	if slices.ContainsFunc(r.Speed, func(f hashlab.SpeedRow) bool { return f.KeyBytes == summary.TypicalKeyBytes }) {
		length = summary.TypicalKeyBytes
	}
	add := s.multiples("Shorter is better. The bar and the number are the median of the runs, the full colour ends at the least; the most is in the table. Blue are families, vermilion single hashes, green the controls.")
	for _, single := range []bool{true, false} {
		work := "all indices"
		if single {
			work = "one value"
		}
		var b bars
		for _, f := range r.Speed {
			if f.KeyBytes != length || (f.K == 1) != single {
				continue
			}
			if single {
				f.Name = f.Label()
			} else {
				f.Name = summary.Label(r, f.Name, f.K)
			}
			if slices.ContainsFunc(b, func(o hashlab.SpeedRow) bool { return o.Name == f.Name }) {
				f.Name += ", " + f.What // another way to do the same
			}
			b = append(b, f)
		}
		if len(b) > 0 {
			add(b.picture(fmt.Sprintf("Time for %s of a key of %d bytes", work, length)))
		}
	}
	return s
}

// bars draws times as horizontal bars, paler from the least time to the median.
// Longer times are omitted: they show the machine's other work, and may be many
// times as long.
type bars []hashlab.SpeedRow

// Plot implements plot.Plotter.
func (b bars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, tick := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
		if tick.Label != "" {
			c.StrokeLine2(chart.Guide(), x(tick.Value), c.Min.Y, x(tick.Value), c.Max.Y)
		}
	}
	style := p.X.Tick.Label
	style.XAlign, style.YAlign = draw.XLeft, draw.YCenter
	for i, f := range b {
		middle := float64(len(b)-i) - 0.5
		low, high := y(middle-0.32), y(middle+0.32)
		bar := func(from, to float64, colour color.Color) {
			c.FillPolygon(colour, []vg.Point{{X: x(from), Y: low}, {X: x(to), Y: low}, {X: x(to), Y: high}, {X: x(from), Y: high}})
		}
		colour := color.NRGBAModel.Convert(chart.Colour(rank(f.Subject))).(color.NRGBA) // what the model converts to
		bar(0, f.NsLeast, colour)
		bar(f.NsLeast, f.NsMedian, mix(colour, white, 0.55))
		c.FillText(style, vg.Point{X: x(f.NsMedian) + vg.Points(4), Y: y(middle) + lift(style)}, format.Rate(f.NsMedian))
	}
}

// plainTicks is gonum/plot's ticks, labelled with as few digits as possible.
type plainTicks struct{}

// Ticks implements plot.Ticker.
func (plainTicks) Ticks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = strconv.FormatFloat(ticks[i].Value, 'g', 6, 64)
		}
	}
	return ticks
}

// picture draws the bars below each other.
func (b bars) picture(title string) (Picture, error) {
	p := chart.New(title, "nanoseconds", "")
	p.Add(b)
	var down plot.ConstantTicks
	most := 0.0
	for i, f := range b {
		down = append(down, plot.Tick{Value: float64(len(b)-i) - 0.5, Label: short(f.Name, 26)})
		most = max(most, f.NsMedian)
	}
	p.Y.Tick.Marker, p.Y.Tick.Length, p.Y.LineStyle.Width = down, 0, 0
	p.X.Tick.Marker = plainTicks{}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, most*1.2, 0, float64(len(b)) // room for the numbers
	return drawPicture(p, 360, vg.Length(70+20*len(b)), "speed-"+title, "")
}
