package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// fontFamily is what the backend writes for New's font, and fallbacks what
// stands there in the end: where Liberation Sans is not installed, Arial and
// Helvetica have letters of the same widths, so that nothing shifts and no font
// has to travel inside the picture.
const (
	fontFamily = "font-family:Liberation Sans;"
	fallbacks  = "font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"
)

// WriteSVG draws p, width × height points large, as an <svg> element: a file of
// its own, or part of an HTML page as it is. It needs no font, style or picture
// from elsewhere, and its <title> is the plot's, or "Plot" without one, for
// people who hear pages. The same plot gives the same bytes.
func WriteSVG(w io.Writer, p *plot.Plot, width, height vg.Length) error {
	if width <= 0 || height <= 0 {
		return fmt.Errorf("drawing: %v × %v points: use sizes above 0", width, height)
	}
	canvas := vgsvg.NewWith(vgsvg.UseWH(width, height))
	drawPlot(draw.New(canvas), p)
	var drawn bytes.Buffer
	if _, err := canvas.WriteTo(&drawn); err != nil {
		return fmt.Errorf("drawing: %w", err)
	}
	svg, err := finish(drawn.String(), p.Title.Text)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, svg); err != nil {
		return fmt.Errorf("writing the picture: %w", err)
	}
	return nil
}

// margin is what stays free around a plot, so that lines and the legend do not
// touch the edge.
const margin = 8

// drawPlot is p.Draw with a margin, and with the name of the y axis drawn here.
// gonum/plot 0.17 draws the name in the right place, but leaves room for it around
// the mean of the axis's ends, which on a logarithmic axis is near the top: there
// would be a gap below the title.
func drawPlot(c draw.Canvas, p *plot.Plot) {
	if p.BackgroundColor != nil {
		c.SetColor(p.BackgroundColor)
		c.Fill(c.Rectangle.Path())
	}
	c = draw.Crop(c, margin, -margin, margin, -margin)
	if p.Y.Label.Text == "" {
		p.Draw(c)
		return
	}
	rest := *p
	rest.Y.Label.Text = ""
	style := p.Y.Label.TextStyle
	style.Rotation += math.Pi / 2
	height := style.FontExtents().Height
	inner := draw.Crop(c, height+p.Y.Label.Padding, 0, 0, 0)
	rest.Draw(inner)
	data := rest.DataCanvas(inner)
	c.FillText(style, vg.Point{X: c.Min.X + height, Y: data.Center().Y}, p.Y.Label.Text)
}

// finish makes of the backend's document an element that says what it is: what
// stands before <svg is no HTML, and a title has to be the first thing inside.
func finish(document, title string) (string, error) {
	_, rest, ok := strings.Cut(document, "<svg ")
	head, body, ok2 := strings.Cut(rest, ">")
	if !ok || !ok2 {
		return "", errors.New("drawing: gonum/plot wrote no <svg> element: was another version of it built in?")
	}
	if title == "" {
		title = "Plot"
	}
	var escaped strings.Builder
	if err := xml.EscapeText(&escaped, []byte(title)); err != nil {
		return "", fmt.Errorf("writing the title: %w", err)
	}
	head = strings.Join(strings.Fields(head), " ")
	return fmt.Sprintf("<svg role=\"img\" %s>\n<title>%s</title>%s", head, &escaped,
		strings.ReplaceAll(body, fontFamily, fallbacks)), nil
}
