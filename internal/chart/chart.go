// Package chart gives all of spamgate's pictures one style: fonts, axes, and lines
// that differ without their colours, too. It draws with gonum/plot, and writes SVG
// that needs no other files.
package chart

import (
	"image/color"

	"golang.org/x/image/font"
	"gonum.org/v1/plot"
	plotfont "gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Sizes of text, in points.
const (
	titleSize = 13
	labelSize = 11
	tickSize  = 10
)

// grey is the colour of axes.
var grey = color.NRGBA{R: 0x60, G: 0x60, B: 0x60, A: 0xFF}

// New returns an empty plot with a title, names for its axes, which should include
// the units, and spamgate's fonts.
func New(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	p.Title.Padding = vg.Points(8)
	p.Title.TextStyle.Font = sans(titleSize)
	p.Title.TextStyle.Font.Weight = font.WeightBold
	p.X.Label.Text, p.Y.Label.Text = x, y
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font = sans(labelSize)
		axis.Label.Padding = vg.Points(4)
		axis.Tick.Label.Font = sans(tickSize)
		axis.LineStyle.Color, axis.Tick.LineStyle.Color = grey, grey
	}
	p.Legend.TextStyle.Font = sans(tickSize)
	p.Legend.ThumbnailWidth = vg.Points(28) // a whole period of the longest dashes
	p.Legend.Padding = vg.Points(2)
	return p
}

// sans returns the font of all text.
func sans(size vg.Length) plotfont.Font {
	return plotfont.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}

// colours are those of Okabe and Ito ("Color Universal Design", 2008), which
// people with any common kind of colour blindness can distinguish, without their
// yellow, since a thin yellow line on white is hard to see for everybody.
var colours = []color.Color{
	color.NRGBA{R: 0x00, G: 0x72, B: 0xB2, A: 0xFF}, // blue
	color.NRGBA{R: 0xD5, G: 0x5E, B: 0x00, A: 0xFF}, // vermilion
	color.NRGBA{R: 0x00, G: 0x9E, B: 0x73, A: 0xFF}, // bluish green
	color.NRGBA{R: 0xCC, G: 0x79, B: 0xA7, A: 0xFF}, // reddish purple
	color.NRGBA{R: 0xE6, G: 0x9F, B: 0x00, A: 0xFF}, // orange
	color.NRGBA{R: 0x56, G: 0xB4, B: 0xE9, A: 0xFF}, // sky blue
	color.NRGBA{R: 0x00, G: 0x00, B: 0x00, A: 0xFF}, // black
}

// dashes are lengths of line and gap in points. Their number has no common divisor
// with that of the colours, so that both together give 7 × 5 different lines.
var dashes = [][]vg.Length{nil, {7, 3}, {2, 2}, {9, 3, 2, 3}, {4, 5}}

// Colour returns the i-th colour, i at least 0. There are seven.
func Colour(i int) color.Color { return colours[i%len(colours)] }

// Line returns the style of a picture's i-th line, i at least 0. Colour and dashes
// change together, so that neighbours differ in grey, too. There are 35.
func Line(i int) draw.LineStyle {
	return draw.LineStyle{Color: Colour(i), Width: vg.Points(1.6), Dashes: dashes[i%len(dashes)]}
}

// Guide returns the style of a line without data: a grid, a limit.
func Guide() draw.LineStyle {
	return draw.LineStyle{Color: color.NRGBA{R: 0xD8, G: 0xD8, B: 0xD8, A: 0xFF}, Width: vg.Points(0.6)}
}
