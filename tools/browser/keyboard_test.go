package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"spamgate/internal/e2e/harness"
)

// TestKeyboard logs in, finds a message and lets its sender in with the keyboard alone. What
// has the focus is visible.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	s := startSite(t, harness.Setup{})
	id := s.refused(t, bob, ann, "blocked-file", "unsolicited mail")
	s.api.WaitRow(t, id)

	b := newTab(t, startBrowser(t), s.url)
	b.open("/login")
	b.tabTo("Name")
	b.press("helpdesk")
	b.tabTo("Password")
	b.press(harness.Password)
	b.follow(chromedp.KeyEvent(kb.Enter))
	b.tabTo("Skip to the content")
	b.tabTo("Mail")
	b.follow(chromedp.KeyEvent(kb.Enter))
	b.tabTo("Address")
	b.press(id)
	b.follow(chromedp.KeyEvent(kb.Enter))
	b.shows(bob)
	b.tabTo("Let in")
	b.follow(chromedp.KeyEvent(kb.Enter))
	b.tabTo("Show what it changes")
	b.follow(chromedp.KeyEvent(kb.Enter))
	b.tabTo("Reason")
	b.press("a customer of ours")
	b.tabTo("Let in " + bob)
	b.follow(chromedp.KeyEvent(kb.Enter))
	passes(t, s, bob, ann)
	b.clean("the keyboard")
}

// press types keys.
func (b *tab) press(keys string) {
	b.t.Helper()
	b.run(chromedp.KeyEvent(keys))
}

// mostTabs is how many times the tabulator is pressed at most.
const mostTabs = 150

// tabTo presses the tabulator until a control has the focus, which must show.
func (b *tab) tabTo(text string) {
	b.t.Helper()
	b.want(text)
	for range mostTabs {
		if eval[bool](b, "document.activeElement === "+control(text)) {
			if !eval[bool](b, `(s => s.outlineStyle !== "none" || s.boxShadow !== "none")(getComputedStyle(document.activeElement))`) {
				b.t.Errorf("%s: %q has the focus, which does not show", b.path(), text)
			}
			return
		}
		b.press(kb.Tab)
	}
	b.t.Fatalf("%s: the tabulator does not reach %q", b.path(), text)
}
