package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"spamgate/internal/e2e/harness"
)

// startBrowser starts chromium, which ends with the test.
func startBrowser(t testing.TB) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(harness.Program(t, "chromium", "chromium")),
		chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("chromium: %v", err)
	}
	return ctx
}

// tab is a tab of the browser with its own cookies. What goes wrong in a page fails the test.
type tab struct {
	t   testing.TB
	ctx context.Context
	url string // of the console

	mu     sync.Mutex
	faults []string
}

// binding is a function that scripts of pages would call if one of a hostile text ran.
const binding = "spamgateRan"

// tabTime bounds what one tab does, with SPAMGATE_E2E_FULL, too.
const tabTime = 30 * time.Minute

// newTab opens a tab with a window of a usual size.
func newTab(t testing.TB, browser context.Context, url string) *tab {
	t.Helper()
	b := &tab{t: t, url: url}
	ctx, stop := chromedp.NewContext(browser, chromedp.WithNewBrowserContext(), chromedp.WithListener(b.event))
	t.Cleanup(stop)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	b.ctx, stop = context.WithTimeout(ctx, tabTime)
	t.Cleanup(stop)
	call(b, log.Enable, cdp.Empty{})
	call(b, runtime.AddBinding, runtime.AddBindingParams{Name: binding})
	b.resize(1280, 1000)
	return b
}

// call runs a command of the protocol.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	result, err := chromedp.Call(b.ctx, command, params)
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

// event notes what should not happen.
func (b *tab) event(event any) {
	switch e := event.(type) {
	case *runtime.EventBindingCalled:
		b.fault("a script of a hostile text ran: %s", e.Payload)
	case *page.EventJavascriptDialogOpening:
		b.fault("a dialog opened: %s", e.Message)
		go chromedp.Call(b.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{}) // an error shows in what follows
	case *runtime.EventExceptionThrown:
		b.fault("a script failed: %s", e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			b.fault("console.%s: %s", e.Type, e.Args[0].Value)
		}
	case *log.EventEntryAdded:
		// A status of 400 and above is an error in the log, too: the tests look at those.
		if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork {
			b.fault("%s: %s (%s)", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	}
}

func (b *tab) fault(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, fmt.Sprintf(format, args...))
}

// clean fails the test with the faults so far, and forgets them.
func (b *tab) clean(where string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.faults {
		b.t.Errorf("%s: %s", where, f)
	}
	b.faults = nil
}

// run runs actions.
func (b *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatalf("%v\n%s", err, b.text())
	}
}

// eval returns the value of an expression of JavaScript.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%v\n%s", err, expression)
	}
	return value
}

// do is an action that runs a statement of JavaScript.
func do(statement string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](statement)
}

// open loads a page of the console.
func (b *tab) open(path string) {
	b.t.Helper()
	if status := b.follow(chromedp.Navigate(b.url + path)); status >= 400 {
		b.t.Fatalf("%s: status %d\n%s", path, status, b.text())
	}
}

// path returns the path of the page, with its query.
func (b *tab) path() string {
	b.t.Helper()
	return eval[string](b, "location.pathname + location.search")
}

// text returns the text of the page as it is shown.
func (b *tab) text() string {
	ctx, cancel := context.WithTimeout(b.ctx, harness.ReplyTimeout)
	defer cancel()
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText")) // it is for messages
	return text
}

// shows fails the test unless the page shows the texts.
func (b *tab) shows(texts ...string) {
	b.t.Helper()
	shown := b.text()
	for _, text := range texts {
		if !strings.Contains(shown, text) {
			b.t.Fatalf("%s does not show %q:\n%s", b.path(), text, shown)
		}
	}
}

// control is an expression for the visible link, button, or field of a label, whose text or
// aria-label begins with a text.
func control(text string) string {
	quoted, _ := json.Marshal(text)
	return `(() => {
		const want = ` + string(quoted) + `.toLowerCase();
		const name = e => (e.getAttribute("aria-label") || [...(e.labels || [])].map(l => l.innerText).join(" ") || e.innerText || e.value || "").trim().toLowerCase();
		const all = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")].filter(e => e.checkVisibility());
		return all.find(e => name(e) === want) || all.find(e => name(e).startsWith(want));
	})()`
}

// click clicks on a link or a button, and waits for the page that follows.
func (b *tab) click(text string) {
	b.t.Helper()
	b.want(text)
	b.follow(do(control(text) + ".click()"))
}

// choose clicks on a choice or a summary.
func (b *tab) choose(text string) {
	b.t.Helper()
	b.want(text)
	b.run(do(control(text) + ".click()"))
}

// follow does what leads to another page, waits for that, and returns its status.
func (b *tab) follow(actions ...chromedp.Action[chromedp.Void]) int64 {
	b.t.Helper()
	response, err := chromedp.RunResponse(b.ctx, actions...)
	if err != nil {
		b.t.Fatalf("%v\n%s", err, b.text())
	}
	if response == nil {
		return 0 // the same page, at another place
	}
	return response.Status
}

// want fails the test unless there is a control.
func (b *tab) want(text string) {
	b.t.Helper()
	if !eval[bool](b, "!!"+control(text)) {
		b.t.Fatalf("%s has no control %q:\n%s", b.path(), text, b.text())
	}
}

// fill types a text into a field.
func (b *tab) fill(label, text string) {
	b.t.Helper()
	b.want(label)
	quoted, _ := json.Marshal(text)
	b.run(do(fmt.Sprintf(`{ const e = %s; e.value = %s; e.dispatchEvent(new Event("change", {bubbles: true})); }`, control(label), quoted)))
}

// resize sets the size of the window.
func (b *tab) resize(width, height int64) {
	b.t.Helper()
	b.run(chromedp.EmulateViewport(width, height))
}

// theme sets the colours that the user prefers: "light" or "dark".
func (b *tab) theme(name string) {
	b.t.Helper()
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
}

// withoutScripts switches JavaScript off.
func (b *tab) withoutScripts() {
	b.t.Helper()
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
}
