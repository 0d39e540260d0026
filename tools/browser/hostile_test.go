package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"

	"spamgate/internal/e2e/harness"
)

// TestHostileText has hostile texts in HELO, in senders of the envelope and the header, in
// Message-ID, in reasons of files and of managed lists, and in queries. The browser ignores the
// Content-Security-Policy here, so that only what is written right is right: no script runs on
// any page, also when every element is touched, and no page has an element or an attribute of
// a text.
func TestHostileText(t *testing.T) {
	t.Parallel()
	texts := corpus(t)
	var file strings.Builder
	for i, text := range texts {
		fmt.Fprintf(&file, "h%d.example  # %s\n", i, text)
	}
	s := startSite(t, harness.Setup{Files: map[string]string{"blocked.txt": file.String()}})
	for i, text := range texts {
		s.sendHostile(t, i, text)
		entry := object{"entry": fmt.Sprintf("m%d.example", i), "reason": text}
		if status, err := s.api.Do("POST", "/api/v1/lists/blocked/entries", entry, nil); err != nil || status != http.StatusCreated && status != http.StatusBadRequest {
			t.Fatalf("%q as a reason: status %d, %v", text, status, err)
		}
	}
	s.api.WaitRow(t, s.sentLast(t))

	b := s.login(t, startBrowser(t), "admin")
	shown := ""
	for path := "/mail"; path != ""; path = eval[string](b, `(a => a ? a.pathname + a.search : "")(`+control("Older")+`)`) {
		b.harmless(path)
		shown += b.text()
	}
	for _, text := range texts {
		if text = strings.Join(strings.Fields(text), " "); !strings.Contains(shown, text) && !strings.ContainsAny(text, "\u202e\u200b\u200f") {
			t.Errorf("no page of the search shows %q", text)
		}
	}
	for _, path := range s.hostilePaths(t) {
		b.harmless(path)
	}
	for i, text := range texts {
		for j, path := range queries {
			if os.Getenv("SPAMGATE_E2E_FULL") == "" && i%len(queries) != j {
				continue
			}
			b.harmless(path + url.QueryEscape(text))
		}
	}
}

// queries are paths that a hostile text is added to.
var queries = []string{
	"/mail?q=", "/mail?sender=", "/mail?domain=", "/mail?list=", "/mail?id=", "/mail?client=", "/mail?since=", "/mail?before=", "/mail?action=",
	"/changes?list=", "/changes?by=", "/changes?entry=", "/changes?before=", "/mail?done=", "/mail?gate=", "/mail/AAAAAAAAAAAA?gate=", "/mail/", "/lists/",
	"/entry/new?type=allow&sender=", "/entry/new?type=", "/entry/new?type=block&sender=x%40y.example&reason=", "/entry/new?type=allow&recipient=", "/entry/new?type=allow&sender=a%40b.example&id=AAAAAAAAAAAA&show=1&gate=",
	"/lists/blocked?q=", "/lists/blocked?at=", "/now?range=", "/try?address=", "/login?to=", "/nothing/",
}

// corpus returns the hostile texts.
func corpus(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(axeFile), "..", "..", "testdata", "hostile.txt"))
	if err != nil {
		t.Fatal(err)
	}
	texts := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(texts) < 60 {
		t.Fatalf("only %d texts", len(texts))
	}
	return texts
}

// sendHostile sends messages with a text wherever SMTP lets it stand.
func (s *site) sendHostile(t testing.TB, i int, text string) {
	t.Helper()
	c := harness.MustDial(t, s.Addr)
	defer c.Close()
	for _, greeting := range []string{"EHLO client.example", "HELO " + strings.ReplaceAll(text, " ", "_"), "EHLO " + text} {
		if reply, err := c.Ask(greeting); err != nil {
			t.Fatalf("%s: %q, %v", greeting, reply, err)
		}
	}
	domain := fmt.Sprintf("@h%d.example", i)
	quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
	for _, from := range []string{quoted + domain, "plain" + domain} {
		if _, err := c.Verdict(from, ann); err != nil {
			t.Fatal(err)
		}
	}
	message := fmt.Sprintf("From: %s <%s%s>\r\nMessage-ID: <%s>\r\nSubject: %s\r\n\r\n%s\r\n", quoted, quoted, domain, text, text, text)
	if _, err := c.Send("sender@passes.example", ann, []byte(message)); err != nil {
		t.Fatal(err)
	}
}

// sentLast sends a message that is refused, after all others, and returns its id.
func (s *site) sentLast(t testing.TB) string {
	t.Helper()
	reply, err := harness.MustDial(t, s.Addr).Verdict("last@h0.example", ann)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(reply, "; id ")
	id, _, _ := strings.Cut(rest, ";")
	return strings.TrimSpace(id)
}

// hostilePaths returns the paths of pages that show hostile texts: each page of the search, the
// stories of a few messages, and all other pages.
func (s *site) hostilePaths(t testing.TB) []string {
	t.Helper()
	paths := []string{"/now", "/lists", "/lists/blocked", "/lists/blocked-file", "/lists/blocked/versions", "/lists/blocked-file/unused", "/changes", "/settings", "/account", "/try"}
	var found struct {
		Decisions []struct {
			ID, Sender string
		}
		Next string
	}
	s.api.Must(t, http.StatusOK, "GET", "/api/v1/decisions?limit=1000", nil, &found)
	step := max(1, len(found.Decisions)/12)
	if os.Getenv("SPAMGATE_E2E_FULL") != "" {
		step = 1
	}
	for i := 0; i < len(found.Decisions); i += step {
		d := found.Decisions[i]
		paths = append(paths, "/mail/"+d.ID, "/entry/new?type=allow&sender="+url.QueryEscape(d.Sender)+"&id="+d.ID)
	}
	return paths
}

// harmless opens a page and fails the test if a text has become more than text there.
func (b *tab) harmless(path string) {
	b.t.Helper()
	call(b, page.SetBypassCSP, page.SetBypassCSPParams{Enabled: true})
	b.load(path)
	strange := eval[[]string](b, `[...document.querySelectorAll("*")].filter(e =>
		e.matches("script:not([src^='/static/']), style, iframe, object, embed, base, marquee, template, math, audio, video, image, x, foreignObject, animate") ||
		[...e.attributes].some(a => a.name.startsWith("on") || a.name === "style" || a.name === "formaction" ||
			["href", "src", "action", "xlink:href", "data"].includes(a.name) && !/^(\/(?!\/)|#|\?|$)/.test(a.value))
	).map(e => e.outerHTML.slice(0, 300))`)
	for _, e := range strange {
		b.t.Errorf("%s has %s", path, e)
	}
	b.run(do(`for (const e of document.querySelectorAll("*"))
		for (const name of ["mouseover", "focus", "blur", "animationstart", "toggle", "error", "load", "dragstart"])
			e.dispatchEvent(new Event(name))`))
	b.clean(path)
}

// load opens a page, whose status may be an error.
func (b *tab) load(path string) {
	b.t.Helper()
	target, _ := json.Marshal(b.url + path)
	if status := b.follow(do("location.href = " + string(target))); status >= 500 {
		b.t.Errorf("%s: status %d", path, status)
	}
}
