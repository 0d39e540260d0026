package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"spamgate/internal/accounts"
	"spamgate/internal/term"
	"spamgate/internal/text"
	"spamgate/internal/version"
	"spamgate/internal/words"
)

//go:embed pages/*.html
var pageFiles embed.FS

//go:embed static
var staticFiles embed.FS

// navItem is a page that the navigation names.
type navItem struct {
	Path, Name string
	may        accounts.Action
}

// navigation lists the pages in their order.
var navigation = []navItem{
	{"/now", "Now", accounts.SeeTotals},
	{"/mail", "Mail", accounts.SeeMail},
	{"/lists", "Lists", accounts.SeeLists},
	{"/try", "Try", accounts.Try},
	{"/changes", "Changes", accounts.SeeChanges},
	{fleetPath, "Fleet", accounts.SeeHealth},
	{"/settings", "Settings", accounts.SeeSettings},
}

// view is what a page shows.
type view struct {
	Title string
	Nav   string // the path of the page in the navigation
	Data  any

	// Refresh, if not 0, has a browser without JavaScript load the page again.
	Refresh time.Duration

	// Set by render.
	Who     accounts.Account
	SSO     bool
	Links   []navItem
	Host    string
	Version string
	Now     time.Time
}

// pages are the parsed templates by name.
type pages map[string]*template.Template

// parsePages parses the templates: each page with the layout and the shared parts.
func parsePages() (pages, error) {
	shared, err := template.New("").Funcs(functions).ParseFS(pageFiles, "pages/_*.html")
	if err != nil {
		return nil, err
	}
	own, err := fs.Glob(pageFiles, "pages/[^_]*.html")
	all := pages{}
	for _, f := range own {
		t, err := shared.Clone()
		if err == nil {
			t, err = t.ParseFS(pageFiles, f)
		}
		if err != nil {
			return nil, err
		}
		all[strings.TrimSuffix(path.Base(f), ".html")] = t
	}
	return all, err
}

// functions are what templates may call.
var functions = template.FuncMap{
	"asset":  asset,
	"number": func(n any) string { return number(n) },
	"time":   func(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") },
	"short":  shortTime,
	"day":    func(t time.Time) string { return t.Local().Format("2006-01-02") },
	"iso":    func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"zone":   func(t time.Time) string { return t.Local().Format("MST -07:00") },
	"join":   strings.Join,

	"visible":      visible,
	"visibleLines": visibleLines,
	"bytes":        func(n int64) string { return term.ByteSize(n) },
	"decimal":      func(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) },
	"half":         func(n int64) int64 { return n / 2 },
	"sub":          func(a, b int) int { return a - b },
}

// number writes a count with separators.
func number(n any) string {
	switch n := n.(type) {
	case int:
		return text.Number(n)
	case int64:
		return text.Number(int(n))
	case uint64:
		return text.Number(int(n))
	case *uint64:
		return text.Number(int(*n))
	}
	return fmt.Sprint(n)
}

// render answers with a page.
func (x *exchange) render(name string, v view) error {
	v.Who, v.SSO, v.Host, v.Version, v.Now = x.who, x.sso, x.console.Config().Hostname, version.Number, x.console.Now()
	for _, n := range navigation {
		if x.who.Name != "" && x.who.MaySome(n.may) && (n.Path != fleetPath || x.console.inFleet()) {
			v.Links = append(v.Links, n)
		}
	}
	return x.show(name, v)
}

// show answers with a page as it is. It is written whole or not at all.
func (x *exchange) show(name string, v view) error {
	var page bytes.Buffer
	if err := x.console.pages[name].ExecuteTemplate(&page, "layout", v); err != nil {
		return fmt.Errorf("page %s: %w", name, err)
	}
	x.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if x.status != 0 {
		x.w.WriteHeader(x.status)
	}
	_, _ = x.w.Write(page.Bytes()) // the browser may be gone
	return nil
}

// assets are the URLs of the static files by name. They change with the content, so that
// browsers may keep the files.
var assets = func() map[string]string {
	all := map[string]string{}
	files, _ := fs.ReadDir(staticFiles, "static") // it is embedded
	for _, f := range files {
		content, _ := staticFiles.ReadFile("static/" + f.Name())
		sum := sha256.Sum256(content)
		all[f.Name()] = "/static/" + f.Name() + "?v=" + hex.EncodeToString(sum[:6])
	}
	return all
}()

// asset returns the URL of a static file.
func asset(name string) (string, error) {
	if u, ok := assets[name]; ok {
		return u, nil
	}
	return "", fmt.Errorf("there is no static file %s", name)
}

// static answers with a static file.
func (x *exchange) static() error {
	name := x.r.PathValue("file")
	content, err := staticFiles.ReadFile("static/" + path.Base(name))
	if err != nil {
		return errNotFound
	}
	x.w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	x.w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	http.ServeContent(x.w, x.r, "", time.Time{}, bytes.NewReader(content))
	return nil
}

// parsePast parses a time in the past.
func parsePast(text string, now time.Time) (time.Time, error) {
	t, err := words.ParseSince(text, now)
	return t, typed(err)
}

// parseEnd parses when an entry ends. "" is never, which is the zero time.
func parseEnd(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := words.ParseUntil(text, now)
	return t, typed(err)
}

// typed makes an error about what a user has typed one for users.
func typed(err error) error {
	if err == nil {
		return nil
	}
	return invalid(err.Error() + ".")
}

// listTime matches a time as lists and the audit log have it.
var listTime = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// localTimes returns a text with its times as the pages write them.
func localTimes(text string) string {
	return listTime.ReplaceAllStringFunc(text, func(s string) string {
		t, err := time.Parse(time.RFC3339, s)
		if err != nil {
			return s
		}
		return t.Local().Format("2006-01-02 15:04")
	})
}

// untilTime writes the end of an entry.
func untilTime(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	tomorrow := now.AddDate(0, 0, 1)
	switch {
	case t.Year() == now.Year() && t.YearDay() == now.YearDay():
		return t.Format("15:04")
	case t.Year() == tomorrow.Year() && t.YearDay() == tomorrow.YearDay():
		return "tomorrow, " + t.Format("15:04")
	}
	return t.Format("2006-01-02 15:04")
}

// shortTime writes a time as briefly as it is clear: without the day if it is today.
func shortTime(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	switch {
	case t.Year() != now.Year():
		return t.Format("2006-01-02 15:04")
	case t.YearDay() != now.YearDay():
		return t.Format("Jan 2 15:04")
	}
	return t.Format(time.TimeOnly)
}

// visible returns a text that strangers wrote so that nothing in it is hidden or changes how the
// rest looks: control characters and those that change the direction of writing become escapes.
func visible(text string) string { return escapeUnusual(text, "") }

// visibleLines is visible, and keeps the ends of lines.
func visibleLines(text string) string { return escapeUnusual(text, "\n") }

func escapeUnusual(text, keep string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	unusual := func(r rune) bool { return !unicode.IsPrint(r) && !strings.ContainsRune(keep, r) }
	if !strings.ContainsFunc(text, unusual) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case !unusual(r):
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}
