package page

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"strings"

	"gonum.org/v1/plot"
	plottext "gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"spamgate/internal/chart"
	"spamgate/internal/hashlab"
	"spamgate/internal/hashlab/format"
	"spamgate/internal/text"
)

func avalancheSection(r *hashlab.Report) section {
	s := section{ID: "avalanche", Title: "Avalanche", About: "How often each bit of a hash's value flips when one bit of the key does. " +
		"With a good hash that is half of the time for each pair of bits, so that its picture is without colour. Bias is |2p - 1| for a probability p: 0 is the ideal. " +
		"The worst bit is the largest bias of a single pair of bits. BIC, the bit independence criterion, is the correlation of two bits of the value when a bit of the key flips. Each p is of the worst among all pairs, hashes and corpora."}
	add := s.multiples("Over the first corpus. Each cell is a bit of the key, across (8 a byte, lowest first), and a bit of the value, down from the highest. Without colour it flips half of the time, blue never, orange always.")
	// The pictures are of the first corpus: the bits that a hash ignores are the
	// same everywhere, and seven times as many pictures would show little more.
	for _, a := range r.Avalanche {
		if a.Corpus == r.Avalanche[0].Corpus && len(a.Flips) > 0 && len(a.Flips[0]) > 0 {
			add(flipsPicture(a))
		}
	}
	s.Tables = append(s.Tables, table(numbers+", over all corpora", []string{"hash", "corpus", "keys", "key bytes", "mean bias", "of chance alone", "worst bit", "its p", "pairs that never flip", "BIC, mean", "BIC, worst", "its p"}, r.Avalanche, func(a hashlab.Avalanche) []string {
		return []string{a.Label(), a.Corpus, text.Number(a.Keys), fmt.Sprint(a.KeyBytes), fmt.Sprintf("%.4f", a.MeanBias), fmt.Sprintf("%.4f", a.Noise), fmt.Sprintf("%.4f", a.WorstBias), format.P(a.WorstP), fmt.Sprintf("%.1f%%", 100*a.Never),
			fmt.Sprintf("%.4f", a.BICMean), fmt.Sprintf("%.4f", a.BICWorst), format.P(a.BICP)}
	}))
	return s
}

// flips draws an avalanche matrix as one square a cell, below a scale of its
// colours.
type flips [][]float64

const (
	// shades is the number of colours of such a picture; few make the file small.
	shades = 65

	// square is the width and height of a cell in the image, in pixels: programs
	// that smooth an image when they scale it then smooth the cells' edges only.
	square = 4

	// scaleFrom and scaleTo are the edges of the scale, in parts of the matrix's
	// height; most leaves room for the words above it.
	scaleFrom, scaleTo, most = 1.1, 1.2, 1.36
)

// shade returns the number of the shade of a probability.
func shade(p float64) uint8 { return uint8(math.Round(max(0, min(1, p)) * (shades - 1))) }

// palette returns the colours of all shades.
func palette() color.Palette {
	colours := make(color.Palette, shades)
	for i := range colours {
		colours[i] = byPart(1 - 2*float64(i)/(shades-1))
	}
	return colours
}

// image returns the matrix with input bits across, and output bits down from the
// highest.
func (f flips) image() image.Image {
	out := len(f[0])
	img := image.NewPaletted(image.Rect(0, 0, square*len(f), square*out), palette())
	for x := range img.Rect.Dx() {
		for y := range img.Rect.Dy() {
			img.SetColorIndex(x, y, shade(f[x/square][out-1-y/square]))
		}
	}
	return img
}

// scale returns all shades side by side.
func scale() image.Image {
	img := image.NewPaletted(image.Rect(0, 0, square*shades, 1), palette())
	for x := range img.Rect.Dx() {
		img.SetColorIndex(x, 0, uint8(x/square))
	}
	return img
}

// Plot implements plot.Plotter.
func (f flips) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	across, out := float64(len(f)), float64(len(f[0]))
	// box returns the rectangle between numbers of the plot's axes.
	box := func(left, right, low, high float64) vg.Rectangle {
		return vg.Rectangle{Min: vg.Point{X: x(left), Y: y(low)}, Max: vg.Point{X: x(right), Y: y(high)}}
	}
	frame := func(r vg.Rectangle) {
		c.StrokeLines(draw.LineStyle{Color: grey, Width: vg.Points(0.5)}, []vg.Point{r.Min, {X: r.Max.X, Y: r.Min.Y}, r.Max, {X: r.Min.X, Y: r.Max.Y}, r.Min})
	}
	cells, colours := box(0, across, 0, out), box(0, across, scaleFrom*out, scaleTo*out)
	c.DrawImage(cells, f.image())
	c.DrawImage(colours, scale())
	frame(cells)
	frame(colours)
	style := plottext.Style{Color: black, Font: p.X.Tick.Label.Font, YAlign: draw.YBottom, Handler: p.TextHandler}
	for _, word := range []struct {
		position float64
		align    plottext.XAlignment
		text     string
	}{{0, draw.XLeft, "0: never flips"}, {0.5, draw.XCenter, "1/2: as it should"}, {1, draw.XRight, "1: always"}} {
		style.XAlign = word.align
		c.FillText(style, vg.Point{X: x(across * word.position), Y: colours.Max.Y + vg.Points(3)}, word.text)
	}
}

// flipsPicture draws an avalanche matrix.
func flipsPicture(a hashlab.Avalanche) (Picture, error) {
	p := chart.New(fmt.Sprintf("%s: mean bias %.3f", a.Label(), a.MeanBias), "bit of the key", "bit of the value")
	p.Add(flips(a.Flips))
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, float64(len(a.Flips)), 0, most*float64(len(a.Flips[0]))
	p.Y.LineStyle.Width = 0 // it would continue beside the scale
	p.X.Tick.Marker, p.Y.Tick.Marker = steps(len(a.Flips), 16), steps(len(a.Flips[0]), 8)
	picture, err := drawPicture(p, 280, 190, "avalanche-"+a.Name, "")
	// The backend calls its PNG a JPEG, and browsers would keep its aspect ratio and
	// blur its cells.
	picture.SVG = strings.ReplaceAll(picture.SVG, `xlink:href="data:image/jpg;`, `preserveAspectRatio="none" style="image-rendering:pixelated" xlink:href="data:image/png;`)
	return picture, err
}

// steps returns ticks from 0 to most, one at each multiple of every.
func steps(most, every int) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for i := 0; i <= most; i += every {
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: fmt.Sprint(i)})
	}
	return ticks
}
