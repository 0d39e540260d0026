package browser

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"spamgate/internal/console"
	"spamgate/internal/e2e/harness"
)

// widths are those of a telephone, a laptop and a large screen.
var widths = []int64{360, 1280, 3840}

// TestPages looks at every page in both themes, and with SPAMGATE_E2E_FULL or
// SPAMGATE_SCREENSHOTS in three widths of each: axe-core finds no fault, no
// script fails, nothing violates the Content-Security-Policy, and a telephone need not be
// scrolled sideways.
func TestPages(t *testing.T) {
	t.Parallel()
	s := busySite(t)
	axe, seen := readAxe(t), map[string]bool{}
	b := newTab(t, startBrowser(t), s.url)
	b.look(axe, "/login")
	b.open("/login")
	b.login("admin")
	for _, path := range s.paths(t) {
		pattern := patternOf(t, path)
		if pattern == "" {
			t.Errorf("there is no page %s", path)
			continue
		}
		seen[pattern] = true
		b.look(axe, path)
	}
	for _, pattern := range pagePatterns(t) {
		if !seen[pattern] {
			t.Errorf("the test lacks a page of the route %s", pattern)
		}
	}
}

// look looks at one page.
func (b *tab) look(axe, path string) {
	b.t.Helper()
	if !everyLook() {
		b.theme("light")
		b.load(path)
		b.resize(1280, 900)
		b.accessible(axe, path)
		b.theme("dark")
		b.load(path)
		b.resize(360, 900)
		b.wide(path, 360)
		b.accessible(axe, path+" in dark at 360 pixels")
		b.clean(path)
		return
	}
	for _, theme := range []string{"light", "dark"} {
		b.theme(theme)
		b.load(path)
		for _, width := range widths {
			b.resize(width, 900)
			b.wide(path, width)
			b.picture(fmt.Sprintf("%s-%s-%d", nameOf(path), theme, width))
		}
		b.resize(1280, 900)
		b.accessible(axe, path+" in "+theme)
	}
	b.resize(360, 900)
	b.accessible(axe, path+" at 360 pixels")
	b.clean(path)
}

// everyLook reports whether to look at each page in both themes and all widths, not only at
// a laptop's in light and a telephone's in dark.
func everyLook() bool {
	return os.Getenv("SPAMGATE_E2E_FULL") != "" || os.Getenv("SPAMGATE_SCREENSHOTS") != ""
}

// routes returns the routes of the console.
func routes(t testing.TB) []console.Route {
	t.Helper()
	c, err := console.New(console.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c.Routes()
}

// notPages are routes of GET whose answers are no pages.
var notPages = map[string]bool{"/{$}": true, "/login": true, "/static/{file}": true, "/mail.csv": true, "/mail/events": true, "/lists/{name}/export": true}

// pagePatterns returns the patterns of the pages.
func pagePatterns(t testing.TB) (patterns []string) {
	t.Helper()
	for _, r := range routes(t) {
		if r.Method == http.MethodGet && !strings.HasPrefix(r.Path, "/api/") && !notPages[r.Path] {
			patterns = append(patterns, r.Path)
		}
	}
	return patterns
}

// patternOf returns the pattern of a path.
func patternOf(t testing.TB, path string) string {
	t.Helper()
	mux := http.NewServeMux()
	for _, r := range routes(t) {
		if r.Method == http.MethodGet {
			mux.Handle("GET "+r.Path, http.NotFoundHandler())
		}
	}
	r, err := http.NewRequest(http.MethodGet, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, pattern := mux.Handler(r)
	return strings.TrimPrefix(pattern, "GET ")
}

// readAxe returns the text of axe-core.
func readAxe(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(axeFile)
	if err != nil {
		harness.SkipMissing(t, "axe-core is not installed: npm ci --prefix tools/browser (%v)", err)
	}
	return string(text)
}

// accessible fails the test with what axe-core finds in the page.
func (b *tab) accessible(axe, where string) {
	b.t.Helper()
	if !eval[bool](b, "!!window.axe") {
		b.run(do(axe))
	}
	found := eval[[]struct {
		ID, Help string
		Nodes    []struct{ HTML, FailureSummary string }
	}](b, `axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations)`)
	for _, v := range found {
		for _, n := range v.Nodes {
			b.t.Errorf("%s: %s: %s\n%s\n%s", where, v.ID, v.Help, n.HTML, n.FailureSummary)
		}
	}
}

// wide fails the test if the page is wider than the window.
func (b *tab) wide(where string, width int64) {
	b.t.Helper()
	size := eval[int64](b, "document.documentElement.scrollWidth")
	if size <= width {
		return
	}
	first := eval[string](b, fmt.Sprintf(`[...document.querySelectorAll("main *")].filter(e => e.getBoundingClientRect().right > %d).map(e => e.outerHTML.slice(0, 200))[0] || ""`, width+1))
	b.t.Errorf("%s is %d pixels wide in a window of %d: %s", where, size, width, first)
}

// picture writes a picture of the whole page.
func (b *tab) picture(name string) {
	b.t.Helper()
	dir := os.Getenv("SPAMGATE_SCREENSHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// nameOf returns the name of a file for a path.
func nameOf(path string) string {
	return strings.Trim(strings.NewReplacer("/", "-", "?", "-", "&", "-", "=", "-", "%", "", "<", "", ">", "").Replace(path), "-")
}

// busySite returns a site with mail, edits, and a held update.
func busySite(t testing.TB) *site {
	t.Helper()
	n := harness.StartNATS(t)
	s := startSite(t, inFleet(n, harness.Setup{
		Lists: harness.ManagedLists + `
[[list]]
name = "imported"
path = "imported.txt"
`,
		Files: map[string]string{"imported.txt": harness.NumberedList(1500)},
	}))
	s.waitFleet(t)
	post := func(list string, entry object, status int) {
		t.Helper()
		s.api.Must(t, status, "POST", "/api/v1/lists/"+list+"/entries", entry, nil)
	}
	post("allowed", object{"entry": "friend.example", "reason": "a partner", "until": "30d"}, http.StatusCreated)
	post("blocked", object{"entry": "offers@shop.example", "reason": "asked three times to stop"}, http.StatusCreated)
	post("allowed-for", object{"entry": "news.example", "for": ann, "reason": "wants the newsletter", "until": "1d"}, http.StatusCreated)

	c := harness.MustDial(t, s.Addr)
	for i := range 60 {
		from := []string{bob, "offers@shop.example", fmt.Sprintf("someone@w%d.example", i), "friend@friend.example"}[i%4]
		if reply, err := c.Verdict(from, ann); err != nil || reply == "" {
			t.Fatal(reply, err)
		}
	}
	c.MustSend(t, "friend@friend.example", ann, harness.SmallMessage("carl@w7.example", "header"))
	long := strings.Repeat("long.", 20) + "spam.example"
	s.refused(t, strings.Repeat("x", 60)+"@"+long, ann, "blocked-file", "unsolicited mail")
	s.api.WaitRow(t, s.refused(t, "last@spam.example", ann, "blocked-file", "unsolicited mail"))

	harness.WriteFile(t, filepath.Join(s.Dir, "imported.txt"), harness.NumberedList(3)) // shrinks too much
	harness.WaitFor(t, "the update to be held", func() bool { return s.Status(t, "imported").Lists[0].Held })
	addMembers(t, n, others()...)
	return s
}

// object is an object of JSON.
type object = map[string]any

// change returns the id of a change.
func (s *site) change(t testing.TB) string {
	t.Helper()
	var page struct{ Changes []struct{ ID string } }
	s.api.Must(t, http.StatusOK, "GET", "/api/v1/changes?list=allowed", nil, &page)
	return page.Changes[0].ID
}

// paths returns a path for each page, and for some pages several.
func (s *site) paths(t testing.TB) []string {
	t.Helper()
	var mail struct {
		Decisions []struct{ ID, Sender string }
	}
	s.api.Must(t, http.StatusOK, "GET", "/api/v1/decisions?limit=1", nil, &mail)
	id := mail.Decisions[0].ID
	return []string{
		"/fleet", "/now", "/now?range=month",
		"/mail", "/mail?q=" + bob, "/mail?q=nobody%40nowhere.example", "/mail?q=%3Cnothing", "/mail?gate=mx1", "/mail/" + id, "/mail/AAAAAAAAAAAA",
		"/entry/new?type=allow&sender=" + bob + "&id=" + id, "/entry/new?type=block&sender=x%40shop.example",
		"/lists", "/lists/blocked", "/lists/imported", "/lists/blocked-file?q=" + bob, "/lists/imported/held", "/lists/blocked/versions", "/lists/imported/unused", "/overlap",
		"/lists/blocked/remove?entry=offers%40shop.example", "/lists/blocked/rollback?version=1",
		"/try", "/changes", "/undo/" + s.change(t), "/settings", "/account",
	}
}
