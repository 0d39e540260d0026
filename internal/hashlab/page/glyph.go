package page

import (
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"spamgate/internal/chart"
)

// glyph is a mark with a fill and a darker edge. Those of gonum/plot have a fill
// without an edge, or thin lines.
type glyph struct {
	colour  color.Color
	radius  vg.Length
	corners int     // 0 for a circle
	turn    float64 // angle of the first corner, from the right, in parts of a whole turn
	inner   float64 // of a star: the radius of its inner corners, in parts of the outer one
	hollow  bool
}

// shapes are the glyphs, neighbours unlike each other. Their number has no common
// divisor with that of the seven colours.
var shapes = []glyph{
	{},                                      // circle
	{corners: 4, turn: 1. / 8},              // square
	{corners: 3, turn: 1. / 4},              // triangle
	{corners: 4},                            // diamond
	{corners: 3, turn: 3. / 4},              // triangle on its tip
	{corners: 5, turn: 1. / 4, inner: 0.42}, // star
	{corners: 4, turn: 1. / 8, inner: 0.35}, // cross
	{corners: 6, turn: 1. / 4},              // hexagon
}

// mark returns the i-th glyph. Colour and shape change together.
func mark(i int) glyph {
	g := shapes[i%len(shapes)]
	g.colour, g.radius = chart.Colour(i), vg.Points(3.6)
	return g
}

// outline returns the glyph's shape around a point.
func (g glyph) outline(point vg.Point) vg.Path {
	var path vg.Path
	if g.corners == 0 {
		radius := 0.88 * g.radius // corners reach further out
		path.Move(vg.Point{X: point.X + radius, Y: point.Y})
		path.Arc(point, radius, 0, 2*math.Pi)
		path.Close()
		return path
	}
	corner := func(turn float64, radius vg.Length) {
		sin, cos := math.Sincos(2 * math.Pi * turn)
		to := vg.Point{X: point.X + radius*vg.Length(cos), Y: point.Y + radius*vg.Length(sin)}
		if len(path) == 0 {
			path.Move(to)
		} else {
			path.Line(to)
		}
	}
	radius := 1.15 * g.radius
	for i := range g.corners {
		turn := g.turn + float64(i)/float64(g.corners)
		corner(turn, radius)
		if g.inner > 0 {
			corner(turn+0.5/float64(g.corners), radius*vg.Length(g.inner))
		}
	}
	path.Close()
	return path
}

// draw draws the glyph around a point.
func (g glyph) draw(c draw.Canvas, point vg.Point) {
	path := g.outline(point)
	rgb := color.NRGBAModel.Convert(g.colour).(color.NRGBA) // what the model converts to
	fill, edge := rgb, draw.LineStyle{Color: mix(rgb, black, 0.45), Width: vg.Points(0.7)}
	if g.hollow {
		fill, edge = white, draw.LineStyle{Color: rgb, Width: vg.Points(1.2)}
	}
	c.SetColor(fill)
	c.Fill(path)
	c.SetLineStyle(edge)
	c.Stroke(path)
}
