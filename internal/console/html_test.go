package console

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// voidElements have no end tag, or need none.
var voidElements = []string{"meta", "link", "img", "input", "br", "option"}

// checkHTML checks that a page is well formed, without repairs by the parser, and that it holds
// nothing that the Content-Security-Policy would stop: no inline script or style.
func checkHTML(text string) error {
	var open []string
	ids := map[string]bool{}
	z := html.NewTokenizer(strings.NewReader(text))
	for {
		kind := z.Next()
		t := z.Token()
		switch kind {
		case html.ErrorToken:
			if !errors.Is(z.Err(), io.EOF) {
				return z.Err()
			}
			if len(open) > 0 {
				return fmt.Errorf("not closed: %v", open)
			}
			return nil
		case html.StartTagToken, html.SelfClosingTagToken:
			if err := checkTag(t, ids); err != nil {
				return fmt.Errorf("%w: %s", err, t)
			}
			if kind == html.StartTagToken && !slices.Contains(voidElements, t.Data) {
				open = append(open, t.Data)
			}
		case html.EndTagToken:
			if t.DataAtom == atom.Option {
				continue
			}
			if len(open) == 0 || open[len(open)-1] != t.Data {
				return fmt.Errorf("</%s> ends %v", t.Data, open)
			}
			open = open[:len(open)-1]
		case html.TextToken:
			if len(open) > 0 && open[len(open)-1] == "script" {
				return fmt.Errorf("a script with text: %q", t.Data)
			}
		}
	}
}

// checkTag checks a tag's attributes.
func checkTag(t html.Token, ids map[string]bool) error {
	for _, a := range t.Attr {
		value := strings.ToLower(strings.TrimSpace(a.Val))
		switch {
		case a.Key == "style", strings.HasPrefix(a.Key, "on"):
			return fmt.Errorf("attribute %s", a.Key)
		case (a.Key == "href" || a.Key == "action" || a.Key == "src") && !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "#"):
			return fmt.Errorf("%s leads elsewhere", a.Key)
		case a.Key == "id" && ids[a.Val]:
			return errors.New("an id that is there already")
		case a.Key == "id":
			ids[a.Val] = true
		}
	}
	if t.DataAtom == atom.Style || t.DataAtom == atom.Iframe || t.DataAtom == atom.Object {
		return errors.New("not allowed")
	}
	return nil
}

// TestCheckHTML checks the check.
func TestCheckHTML(t *testing.T) {
	for text, good := range map[string]bool{
		`<p>a<br><b>b</b></p>`:           true,
		`<select><option>a</select>`:     true,
		`<p><b>a</p></b>`:                false,
		`<p>a`:                           false,
		`<p style="color: red">a</p>`:    false,
		`<p onclick="x()">a</p>`:         false,
		`<a href="javascript:x()">a</a>`: false,
		`<script>x()</script>`:           false,
		`<i id="a"></i><i id="a"></i>`:   false,
	} {
		if err := checkHTML(text); (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// visit gets a page and checks its HTML.
func visit(t testing.TB, c *Console, cookie *http.Cookie, path string, status int) (body string) {
	t.Helper()
	response, body := ask(c, with(get(path), cookie))
	if response.StatusCode != status {
		t.Fatalf("GET %s: %s, want %d\n%s", path, response.Status, status, body)
	}
	if err := checkHTML(body); err != nil {
		t.Errorf("GET %s: %v", path, err)
	}
	return body
}

// wantText checks that a page has texts, and not others, which begin with "!".
func wantText(t testing.TB, body string, texts ...string) {
	t.Helper()
	shown := plainText(body)
	for _, text := range texts {
		if absent, not := strings.CutPrefix(text, "!"); not {
			if strings.Contains(shown, absent) {
				t.Errorf("the page has %q:\n%s", absent, shown)
			}
		} else if !strings.Contains(shown, text) {
			t.Errorf("the page lacks %q:\n%s", text, shown)
		}
	}
}

// plainText returns the text of a page in one line, and the values of its fields.
func plainText(body string) string {
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(body))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return strings.Join(strings.Fields(b.String()), " ")
		case html.TextToken:
			b.WriteString(" " + z.Token().Data + " ")
		case html.StartTagToken:
			t := z.Token()
			for _, a := range t.Attr {
				if t.DataAtom == atom.Input && a.Key == "value" {
					b.WriteString(" [" + a.Val + "] ")
				}
			}
		}
	}
}

// links returns the paths that a page leads to, and those of its forms.
func links(body string) (all []string) {
	z := html.NewTokenizer(strings.NewReader(body))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return all
		case html.StartTagToken:
			for _, a := range z.Token().Attr {
				if a.Key == "href" || a.Key == "action" || a.Key == "data-live" {
					all = append(all, a.Val)
				}
			}
		}
	}
}

// linkTo returns the first link that begins so; "" for none.
func linkTo(body, prefix string) string {
	for _, l := range links(body) {
		if strings.HasPrefix(l, prefix) {
			return l
		}
	}
	return ""
}
