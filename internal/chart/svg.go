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

// fontFamily is the backend's text for New's font, and fallbacks its replacement:
// Arial and Helvetica have the same widths of letters as Liberation Sans, so that
// nothing shifts if that is not installed, and the picture need not contain a
// font.
const (
	fontFamily = "font-family:Liberation Sans;"
	fallbacks  = "font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"
)

// WriteSVG draws p, width × height points large, as an <svg> element, which can be
// a file or a part of an HTML page. It needs no font, style or picture from
// elsewhere. Its <title>, for screen readers, is the plot's, or "Plot". The same
// plot gives the same bytes.
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

// margin is the free space around a plot, in points.
const margin = 8

// drawPlot draws p with a margin, and draws the name of the y axis itself. gonum/plot
// 0.17 draws the name in the right place, but reserves space for it around the
// mean of the axis's ends, which on a logarithmic axis is near the top: there would
// be a gap below the title.
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

// finish turns the backend's document into an element with a title. The text before
// <svg is not HTML, and a title must be the first child.
func finish(document, title string) (string, error) {
	_, rest, ok := strings.Cut(document, "<svg ")
	head, body, ok2 := strings.Cut(rest, ">")
	if !ok || !ok2 {
		return "", errors.New("drawing: gonum/plot wrote no <svg> element; build with the version of go.mod")
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
