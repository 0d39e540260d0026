package look

import (
	"fmt"
	"io"
	"strings"
	"time"

	"spamgate/internal/admin"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

// printListDetails prints all there is to know of a list.
func printListDetails(w io.Writer, l *admin.List) {
	line := func(label, format string, args ...any) {
		term.PrintWrapped(w, fmt.Sprintf("  %-12s ", label), fmt.Sprintf(format, args...))
	}
	fmt.Fprint(w, "\n"+l.Name+"\n")
	action := l.Type
	if l.Action != "" {
		action += ", " + l.Action
	}
	if l.HeaderAction != "" {
		action += ", in headers " + l.HeaderAction
	}
	action += conditions(l)
	line("type", "%s%s", action, keptBy(l))
	if l.URL != "" {
		line("url", "%s", l.URL)
	}
	if l.DNS != nil {
		printDNSDetails(line, l.DNS)
		printTrouble(w, l)
		return
	}
	line("format", "%s", formatText(l))
	for _, f := range l.Files {
		line("file", "%s, %s, changed %s (%s ago)", term.ShortPath(f.Path), term.ByteSize(f.Bytes), session.Clock(f.Modified), term.Age(time.Since(f.Modified)))
	}
	line("entries", "%s%s", text.Number(l.Entries), session.Also(l.Exceptions, "exception", "exceptions")+
		session.Also(l.Duplicates, "duplicate", "duplicates"))
	line("left out", "%s%s", text.Count(l.Invalid, "invalid line", "invalid lines"), session.Also(l.Unsupported, "unsupported", "unsupported")+
		session.Also(l.Protected, "covers a protected name", "cover a protected name")+
		session.Also(l.Disallowed, "disallowed in a list from a URL", "disallowed in a list from a URL")+
		session.Also(l.Expired, "expired", "expired"))
	for _, p := range l.Problems {
		hint := ""
		if p.Hint != "" {
			hint = "; " + p.Hint
		}
		term.PrintWrapped(w, "    ", fmt.Sprintf("%s:%d: %q: %s%s", term.ShortPath(p.File), p.Line, p.Text, p.What, hint))
	}
	for _, note := range l.Notes {
		line("note", "%s", note)
	}
	if l.NextExpiry != nil {
		line("next expiry", "%s", session.Clock(*l.NextExpiry))
	}
	if l.Loaded != nil {
		line("read", "%s", session.Clock(*l.Loaded))
	}
	if f := l.Fetch; f != nil {
		printFetch(line, f)
	}
	if p := l.Published; p != nil {
		printPublished(line, p)
	}
	if l.HitsToday != nil {
		line("hits today", "%s", text.Number(*l.HitsToday))
	}
	line("index", "%s", term.ByteSize(l.IndexBytes))
	if l.FillRatio == 0 && l.FPR > 0 { // fuse
		line("filter", "of its own, FPR %s", term.FPR(float64(l.FPR)))
	} else {
		line("filter", "alone it would fill %s, FPR %s", term.SmallText(l.FillRatio), term.FPR(float64(l.FPR)))
	}
	printTrouble(w, l)
}

func printFetch(line func(label, format string, args ...any), f *admin.Fetch) {
	for _, t := range []struct {
		label string
		time  *time.Time
	}{{"fetched", f.LastGood}, {"last try", f.LastTry}, {"next try", f.NextTry}} {
		if t.time != nil {
			line(t.label, "%s", session.Clock(*t.time))
		}
	}
	if f.Sequence != 0 {
		line("sequence", "%d", f.Sequence)
	}
	if f.Expires != nil {
		line("expires", "%s", session.Clock(*f.Expires))
	}
	if f.Replaced {
		line("rolled back", "the copy stays until the server has another version")
	}
}

func printPublished(line func(label, format string, args ...any), p *admin.Published) {
	switch {
	case p.Sequence == 0:
		line("published", "not yet")
	case p.Expires != nil:
		line("published", "sequence %d, signed %s, expires %s", p.Sequence, session.Clock(*p.Signed), session.Clock(*p.Expires))
	default:
		line("published", "sequence %d, signed %s", p.Sequence, session.Clock(*p.Signed))
	}
	if p.Error != "" {
		line("not published", "%s", p.Error)
	}
}

// conditions says when the entries of a list count, or "" if they always do.
func conditions(l *admin.List) (text string) {
	if l.ProvenBy != "" {
		text += ", if proven by " + strings.ReplaceAll(l.ProvenBy, ",", " or ")
	}
	if l.PerRecipient {
		text += ", by recipient"
	}
	return text
}
