package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
)

// sample returns a plot with some of everything.
func sample(t *testing.T) *plot.Plot {
	t.Helper()
	p := New("Rates & <sizes>", "entries", "rate")
	for i := range 3 {
		line, err := plotter.NewLine(plotter.XYs{{X: 0, Y: 1e-6}, {X: 1, Y: 0.1 * float64(i+1)}})
		if err != nil {
			t.Fatal(err)
		}
		line.LineStyle = Line(i)
		p.Add(line)
		p.Legend.Add(fmt.Sprint("line ", i), line)
	}
	LogScale(&p.Y, -7, 0)
	return p
}

func TestWriteSVG(t *testing.T) {
	var first, second bytes.Buffer
	if err := WriteSVG(&first, sample(t), 400, 300); err != nil {
		t.Fatal(err)
	}
	if err := WriteSVG(&second, sample(t), 400, 300); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same plot gave two pictures")
	}
	svg := first.String()
	if !strings.HasPrefix(svg, "<svg ") {
		t.Errorf("begins with %.40q, want the element alone", svg)
	}
	if strings.Contains(svg, fontFamily) || !strings.Contains(svg, fallbacks) {
		t.Error("fonts without a fallback")
	}
	// xmlns:xlink is a name, not a place; nothing else may point elsewhere.
	if n := strings.Count(svg, "http"); n != 2 {
		t.Errorf("%d addresses, want those of the two name spaces", n)
	}
	if got := firstInside(t, svg); got != "Rates & <sizes>" {
		t.Errorf("the first element inside is no title, or the wrong one: %q", got)
	}
}

// firstInside returns the text of the title, which must be the first element inside
// the picture; the rest must be XML.
func firstInside(t *testing.T, svg string) string {
	t.Helper()
	var document struct {
		XMLName xml.Name
		Any     []struct {
			XMLName xml.Name
			Text    string `xml:",chardata"`
		} `xml:",any"`
	}
	if err := xml.Unmarshal([]byte(svg), &document); err != nil {
		t.Fatalf("no XML: %v\n%s", err, svg)
	}
	if document.XMLName.Local != "svg" || len(document.Any) == 0 || document.Any[0].XMLName.Local != "title" {
		t.Fatalf("an element %s with %v", document.XMLName.Local, document.Any)
	}
	return document.Any[0].Text
}

func TestWriteSVGWithoutTitle(t *testing.T) {
	var out bytes.Buffer
	if err := WriteSVG(&out, New("", "x", "y"), 100, 100); err != nil {
		t.Fatal(err)
	}
	if got := firstInside(t, out.String()); got != "Plot" {
		t.Errorf("title %q, want Plot", got)
	}
}

var errBroken = errors.New("broken")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestWriteSVGErrors(t *testing.T) {
	if err := WriteSVG(brokenWriter{}, sample(t), 100, 100); !errors.Is(err, errBroken) {
		t.Errorf("%v, want the writer's error", err)
	}
	if err := WriteSVG(io.Discard, sample(t), 0, 100); err == nil || !strings.Contains(err.Error(), "above 0") {
		t.Errorf("width 0: %v, want an error that says what is allowed", err)
	}
	if _, err := finish("no picture", "title"); err == nil {
		t.Error("a document without <svg> is taken")
	}
}

func TestLinesDiffer(t *testing.T) {
	seen := make(map[string]int)
	for i := range len(colours) * len(dashes) {
		look := fmt.Sprint(Line(i).Color, Line(i).Dashes)
		if before, ok := seen[look]; ok {
			t.Errorf("line %d looks like line %d", i, before)
		}
		seen[look] = i
	}
	if fmt.Sprint(Line(0)) != fmt.Sprint(Line(35)) {
		t.Error("line 35 is not line 0 again, as documented")
	}
}

func TestLogScale(t *testing.T) {
	for _, c := range []struct {
		low, high int
		labels    string
		ticks     int
	}{
		{-2, 0, "10⁻² 10⁻¹ 1", 19},
		{3, 4, "10³ 10⁴", 10},
		{-30, 0, "10⁻³⁰ 10⁻²⁷ 10⁻²⁴ 10⁻²¹ 10⁻¹⁸ 10⁻¹⁵ 10⁻¹² 10⁻⁹ 10⁻⁶ 10⁻³ 1", 31},
		{-300, 0, "10⁻³⁰⁰ 10⁻²⁷⁰ 10⁻²⁴⁰ 10⁻²¹⁰ 10⁻¹⁸⁰ 10⁻¹⁵⁰ 10⁻¹²⁰ 10⁻⁹⁰ 10⁻⁶⁰ 10⁻³⁰ 1", 11},
		{-11, 0, "10⁻¹⁰ 10⁻⁸ 10⁻⁶ 10⁻⁴ 10⁻² 1", 12},
	} {
		p := New("", "", "")
		LogScale(&p.Y, c.low, c.high)
		ticks := p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max)
		var labels []string
		for _, tick := range ticks {
			if tick.Label != "" {
				labels = append(labels, tick.Label)
			}
		}
		if got := strings.Join(labels, " "); got != c.labels || len(ticks) != c.ticks {
			t.Errorf("LogScale(%d, %d): %d ticks with labels %s; want %d with %s", c.low, c.high, len(ticks), got, c.ticks, c.labels)
		}
	}
}
