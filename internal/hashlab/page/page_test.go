package page

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"image"
	"image/color"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"spamgate/internal/hashlab"
	"spamgate/internal/hashlab/summary"
)

// fixture reads the made-up report that package render's tests write. One of its
// corpora has a hostile name.
func fixture(t testing.TB) *hashlab.Report {
	t.Helper()
	text, err := os.ReadFile("../render/testdata/report.json")
	if err != nil {
		t.Fatal(err)
	}
	r := new(hashlab.Report)
	if err := json.Unmarshal(text, r); err != nil {
		t.Fatal(err)
	}
	return r
}

func written(t testing.TB, r *hashlab.Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// nodes returns all elements of a page.
func nodes(t testing.TB, page string) []*html.Node {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var all []*html.Node
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			all = append(all, n)
		}
	}
	return all
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// textOf returns the text of a node.
func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// TestPageNeedsNothing wants no script, and nothing from elsewhere: each link
// leads to a place of the page itself, each picture is in it.
func TestPageNeedsNothing(t *testing.T) {
	page := written(t, fixture(t))
	ids := map[string]bool{}
	all := nodes(t, page)
	for _, n := range all {
		if id := attribute(n, "id"); id != "" {
			if ids[id] {
				t.Errorf("two elements are called %s", id)
			}
			ids[id] = true
		}
	}
	for _, n := range all {
		if n.Data == "details" {
			t.Error("a part is closed, and would not be printed")
		}
		if slices.Contains([]string{"script", "link", "iframe", "object", "embed", "base", "form"}, n.Data) {
			t.Errorf("there is a <%s>", n.Data)
		}
		for _, a := range n.Attr {
			switch {
			case strings.HasPrefix(a.Key, "on"):
				t.Errorf("<%s> has %s", n.Data, a.Key)
			case a.Key == "href" && n.Data == "a":
				if !strings.HasPrefix(a.Val, "#") || !ids[a.Val[1:]] {
					t.Errorf("a link leads to %s", a.Val)
				}
			case a.Key == "src" || a.Key == "href" || a.Key == "xlink:href":
				if !strings.HasPrefix(a.Val, "data:image/png;base64,") {
					t.Errorf("<%s> has %s=%.40s", n.Data, a.Key, a.Val)
				}
			}
		}
	}
	if style := page[strings.Index(page, "<style>"):strings.Index(page, "</style>")]; strings.Contains(style, "url(") || strings.Contains(style, "@import") {
		t.Error("the style needs something from elsewhere")
	}
}

// TestPageForEveryone wants a label at each picture and region, a caption at each
// figure, headers at each table's columns and rows, and one name for each
// heading's section.
func TestPageForEveryone(t *testing.T) {
	pictures := 0
	for _, n := range nodes(t, written(t, fixture(t))) {
		switch n.Data {
		case "html":
			if attribute(n, "lang") != "en" {
				t.Error("the page does not say its language")
			}
		case "svg":
			pictures++
			if first := n.FirstChild; attribute(n, "role") != "img" || firstElement(first) == nil || firstElement(first).Data != "title" || textOf(firstElement(first)) == "" {
				t.Errorf("a picture has no role and title: %.80s", attribute(n, "viewBox"))
			}
		case "img":
			t.Error("there is an <img>: pictures are inline")
		case "figure":
			if !slices.ContainsFunc(slices.Collect(n.ChildNodes()), func(c *html.Node) bool { return c.Data == "figcaption" && len(textOf(c)) > 20 }) {
				t.Errorf("a figure has no caption: %.80s", textOf(n))
			}
		case "section":
			if attribute(n, "id") == "" || attribute(n, "aria-labelledby") != attribute(n, "id")+"-title" {
				t.Errorf("a section has no name: %.80s", textOf(n))
			}
		case "th":
			if s := attribute(n, "scope"); s != "row" && s != "col" {
				t.Errorf("a header of a table is for nothing: %s", textOf(n))
			}
		case "div":
			if attribute(n, "role") == "region" && attribute(n, "aria-label") == "" {
				t.Errorf("a region has no name: %.80s", textOf(n))
			}
		}
	}
	if all, err := Pictures(fixture(t)); err != nil || len(all) != pictures || pictures < 12 {
		t.Errorf("%d pictures on the page, %d as files, %v", pictures, len(all), err)
	}
}

// firstElement returns the first element from n on.
func firstElement(n *html.Node) *html.Node {
	for n != nil && n.Type != html.ElementNode {
		n = n.NextSibling
	}
	return n
}

// TestPageHasAll wants a row for each of the report's, the summary, and the
// manifest.
func TestPageHasAll(t *testing.T) {
	r := fixture(t)
	r.Summary = append(r.Summary, hashlab.Finding{Text: "A sentence with <b>, & and \"quotes\"."})
	all := nodes(t, written(t, r))
	rows := map[string]int{} // by the id of the section
	sentences := 0
	var whole string
	for _, n := range all {
		switch n.Data {
		case "tr":
			for up := range n.Ancestors() {
				if up.Data == "section" {
					rows[strings.TrimSuffix(attribute(up, "id"), "-numbers")]++
				}
			}
		case "li":
			sentences++
		case "body":
			whole = textOf(n)
		}
	}
	for id, want := range map[string]int{
		"corpora": len(r.Manifest.Corpora) + 1, "rates": len(r.FPR) + 2 + len(r.Equivalence) + 1, "messages": len(r.Messages) + 1, "pass-rates": len(r.PassRates) + 1,
		"collisions": len(r.Collisions) + 1, "uniformity": len(r.Uniformity) + 1, "avalanche": len(r.Avalanche) + 1, "agreement": 6 + 1, "speed": len(r.Speed) + 1,
	} {
		if rows[id] != want {
			t.Errorf("section %s has %d rows, want %d with the headers", id, rows[id], want)
		}
	}
	if want := len(r.Summary) + len(summary.Short(r)); sentences != want {
		t.Errorf("%d sentences, want %d", sentences, want)
	}
	for _, want := range []string{r.Manifest.PublicKey, r.Manifest.Corpora[0].SHA256, r.Manifest.Flags[1], `A sentence with <b>, & and "quotes".`} {
		if !strings.Contains(whole, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// TestPageInterrupted wants a warning, and none otherwise.
func TestPageInterrupted(t *testing.T) {
	r := fixture(t)
	for _, interrupted := range []bool{false, true} {
		r.Interrupted = interrupted
		if got := strings.Contains(written(t, r), `class="warning"`); got != interrupted {
			t.Errorf("interrupted %t: a warning %t", interrupted, got)
		}
	}
}

// TestPageOfNothing wants a page of a report that has nothing, and no pictures.
func TestPageOfNothing(t *testing.T) {
	if page := written(t, new(hashlab.Report)); !strings.Contains(page, "There is nothing to summarise.") || strings.Contains(page, "<figure") {
		t.Errorf("got:\n%s", page)
	}
}

// TestPageWriteError wants the writer's error.
func TestPageWriteError(t *testing.T) {
	r, w := io.Pipe()
	r.CloseWithError(os.ErrClosed)
	if err := Write(w, fixture(t)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// TestPictures wants XML, whatever a corpus is called, names that can be files',
// and the same bytes each time.
func TestPictures(t *testing.T) {
	first, err := Pictures(fixture(t))
	if err != nil {
		t.Fatal(err)
	}
	second, err := Pictures(fixture(t))
	if err != nil || !slices.Equal(first, second) {
		t.Errorf("the same report gave other pictures, %v", err)
	}
	names := map[string]bool{}
	for _, p := range first {
		if names[p.Name] || p.Name == "" || strings.Trim(p.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			t.Errorf("a picture is called %q, or two are", p.Name)
		}
		names[p.Name] = true
		d := xml.NewDecoder(strings.NewReader(p.SVG))
		for err = nil; err == nil; {
			_, err = d.Token()
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s is no XML: %v", p.Name, err)
		}
	}
}

// TestFlips wants each cell of an avalanche matrix as a square of one colour in its
// place, and a scale that says what the colours mean.
func TestFlips(t *testing.T) {
	f := flips{{0, 0.5}, {1, 0.25}, {0.5, 0.5}} // [input bit][output bit]
	img := f.image()
	if got := img.Bounds().Size(); got != image.Pt(3*square, 2*square) {
		t.Fatalf("%v points", got)
	}
	for in, outs := range f {
		for out, p := range outs {
			want := color.Color(byPart(1 - 2*p))
			for dx := range square {
				for dy := range square {
					if got := img.At(square*in+dx, square*(1-out)+dy); got != want { // the highest bit is at the top
						t.Fatalf("cell %d, %d: %v, want %v", in, out, got, want)
					}
				}
			}
		}
	}
	all, err := Pictures(fixture(t))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(p Picture) bool { return p.Name == "avalanche-pjw" })
	for _, want := range []string{"0: never flips", "1/2: as it should", "1: always", "image-rendering:pixelated"} {
		if i < 0 || !strings.Contains(all[i].SVG, want) {
			t.Errorf("the picture of PJW lacks %q", want)
		}
	}
}

func TestFileName(t *testing.T) {
	for in, want := range map[string]string{"fpr-classic:RS,JS-2": "fpr-classic-rs-js-2", "Ä../etc": "etc", "a b": "a-b", "": ""} {
		if got := fileName(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestFileNameOfMany: the name of a family of many seeds fits a file's, and two that
// differ at their end alone have two.
func TestFileNameOfMany(t *testing.T) {
	seeds := strings.Repeat("4294967295,", 63)
	item, other := fileName("fpr-weighted:"+seeds+"1-64"), fileName("fpr-weighted:"+seeds+"2-64")
	if item == other || len(item) > maxFileName+len("-01234567") || !strings.HasPrefix(item, "fpr-weighted-4294967295-4294967295-") {
		t.Errorf("%s and %s", item, other)
	}
	if again := fileName("fpr-weighted:" + seeds + "1-64"); again != item {
		t.Errorf("%s, and again %s", item, again)
	}
}

func TestShort(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"real-list", "real-list"},
		{"weighted:5,7,11", "weighted:…"},
		{"lists/2026/ä.txt", "…026/ä.txt"},
	} {
		if got := short(c.in, 10); got != c.want {
			t.Errorf("%q: %q, want %q", c.in, got, c.want)
		}
	}
}
