package console

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
	"spamgate/internal/check"
	"spamgate/internal/config"
	"spamgate/internal/decisions"
	"spamgate/internal/listfiles"
	"spamgate/internal/managed"
)

// entryPreview says what an entry would have changed.
type entryPreview struct {
	*check.Preview
	Off      bool                // there is no history
	Failed   bool                // it could not be made: the log says why
	Days     int                 // how far it was looked back
	Messages int                 // that would have been decided otherwise
	Part     bool                // older messages of these days were not looked at
	About    *decisions.Decision // the message that the user came from; nil: none, or it is gone
	Lost     bool                // it is gone
	Allow    bool                // the entry lets in
	Shown    []check.Changed

	Remedies []remedy // what would help the message instead
}

// remedy is a way to let a message in.
type remedy struct {
	Steps []string
	Path  string // of the form that does it, if it has one step
}

const (
	previewDays = 7
	previewRows = 500 // of the history that are judged again
	shownRows   = 10  // of those that change
	previewTime = 2 * time.Second
)

// entryPreview judges recent mail of the sender again, as if the list had the entry.
func (x *exchange) entryPreview(f *entryForm, l *config.List) *entryPreview {
	ctx, stop := context.WithTimeout(x.r.Context(), previewTime)
	defer stop()
	proposed := check.Proposed{List: l.Name, Entry: f.Entry, For: f.To}
	p, err := x.preview(ctx, proposed, f.ID, f.Gate, x.pastOf(f))
	if err == nil && f.Allow && p.About != nil && !p.Helps {
		p.Remedies, err = x.remedies(ctx, f, p.About)
	}
	if err == nil {
		p.Allow = f.Allow
	}
	return x.previewed(p, err)
}

// previewed returns a preview that says so if it cannot be made. The change can be made without.
func (x *exchange) previewed(p *entryPreview, err error) *entryPreview {
	if err == nil {
		return p
	}
	x.console.Logger.Warn("console preview failed", "user", x.who.Name, "path", x.r.URL.Path, "error", err)
	return &entryPreview{Failed: true}
}

// preview judges past mail of this gate again, as if a list were changed. The id is that of the
// message that the user came from, "" for none, and the gate of the fleet had it.
func (x *exchange) preview(ctx context.Context, proposed check.Proposed, id, gate string, past decisions.Query) (p *entryPreview, err error) {
	p = &entryPreview{Days: previewDays}
	if !x.console.keepsHistory() {
		p.Off = true
		return p, nil
	}
	if p.About, err = x.about(ctx, id, gate); err != nil {
		return nil, err
	}
	p.Lost = id != "" && p.About == nil
	past.Since, past.RecipientDomains, past.Limit = x.console.Now().AddDate(0, 0, -previewDays), x.who.Domains, previewRows
	page, err := x.console.History.Find(ctx, past)
	if err != nil {
		return nil, err
	}
	p.Part = page.Next != "" || page.Incomplete
	proposed.About = p.About
	if p.Preview, err = x.console.Check.Preview(ctx, proposed, page.Decisions); err != nil {
		return nil, err
	}
	for _, c := range p.Changed {
		p.Messages += c.Count
	}
	p.Shown = p.Changed[:min(len(p.Changed), shownRows)]
	return p, nil
}

// Otherwise says what would have become of the messages that change.
func (p *entryPreview) Otherwise() string {
	for _, c := range p.Changed {
		if c.Would != p.Changed[0].Would {
			return "decided otherwise"
		}
	}
	return p.Changed[0].Would.Done()
}

// maxRemedies bounds the remedies that are shown.
const maxRemedies = 3

// remedies returns what would let a message in that the account may do.
func (x *exchange) remedies(ctx context.Context, f *entryForm, d *decisions.Decision) (shown []remedy, err error) {
	all, err := x.console.Check.Remedies(ctx, *d)
	for _, r := range all {
		if len(shown) == maxRemedies {
			break
		}
		var help remedy
		for _, step := range r {
			if !x.maySuggest(step) {
				help.Steps = nil
				break
			}
			help.Steps = append(help.Steps, stepWords(step))
			help.Path = f.stepPath(step)
		}
		if len(r) > 1 {
			help.Path = ""
		}
		if help.Steps != nil {
			shown = append(shown, help)
		}
	}
	return shown, err
}

// stepWords says what a change does.
func stepWords(step check.Proposed) string {
	entry := step.Entry
	if step.For != "" {
		entry += " for " + step.For
	}
	if step.Remove {
		return "Remove " + entry + " from the list " + step.List
	}
	return "Add " + entry + " to the list " + step.List
}

// maySuggest reports whether the account may make a change.
func (x *exchange) maySuggest(step check.Proposed) bool {
	l, err := x.console.list(step.List)
	if err != nil {
		return false
	}
	name := managed.Name{Entry: step.Entry, For: step.For}
	if step.Remove {
		return x.console.mayRemove(x.who, l, name) == nil
	}
	return x.console.mayAdd(x.who, l, name, x.console.Now().Add(time.Hour)) == nil
}

// stepPath returns the path of the form for a change; "" if there is none.
func (f *entryForm) stepPath(step check.Proposed) string {
	switch {
	case step.Remove:
		q := url.Values{"entry": {step.Entry}, "for": {step.For}, "back": {f.Back}}
		return "/lists/" + url.PathEscape(step.List) + "/remove?" + q.Encode()
	case strings.HasPrefix(step.Entry, "!"):
		return ""
	}
	q := url.Values{"type": {"allow"}, "list": {step.List}, "sender": {strings.TrimPrefix(step.Entry, "@")}, "id": {f.ID}, "back": {f.Back}, "show": {"1"}}
	if f.Gate != "" {
		q.Set("gate", f.Gate)
	}
	switch {
	case step.Entry == "<>":
	case strings.HasPrefix(step.Entry, "@"):
		q.Set("what", whatDomain)
	case strings.Contains(step.Entry, "@"):
		q.Set("what", whatAddress)
	default:
		q.Set("what", whatBelow)
	}
	if step.For != "" {
		q.Set("recipient", strings.TrimPrefix(step.For, "@"))
		q.Set("whom", forRecipient)
		if strings.HasPrefix(step.For, "@") {
			q.Set("whom", forDomain)
		}
	}
	return "/entry/new?" + q.Encode()
}

// aboutTime bounds the question to another gate.
const aboutTime = previewTime / 2

// about returns the decision about a message that names an entry, or else its newest one; nil if
// the history has none.
func (x *exchange) about(ctx context.Context, id, gate string) (*decisions.Decision, error) {
	if id == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, aboutTime)
	defer cancel()
	found, err := x.findMessage(ctx, id, gate, 20)
	if err != nil || len(found.Decisions) == 0 {
		return nil, err
	}
	all := ofOneGate(found.Decisions)
	for i := range all {
		if all[i].List != "" {
			return &all[i], nil
		}
	}
	return &all[0], nil
}

// pastOf returns which decisions are about mail that the entry is about.
func (x *exchange) pastOf(f *entryForm) (q decisions.Query) {
	switch f.What {
	case whatAddress:
		q.Sender = x.console.Show(f.address())
	case whatNull:
		q.Sender = "<>"
	default:
		q.Domain = f.domain()
	}
	if f.Whom == forRecipient {
		recipient, _ := f.recipient()
		q.Recipient = x.console.Show(recipient)
	}
	return q
}

// pastOfEntry returns which decisions are about mail that an entry of a list matches.
func (x *exchange) pastOfEntry(e listfile.Entry) (q decisions.Query) {
	switch {
	case e.Kind == sender.KindNull:
		q.Sender = "<>"
	case listfiles.DomainOf(e) != "":
		q.Domain = listfiles.DomainOf(e)
	case e.Kind == sender.KindAddress:
		q.Sender = x.console.Show(e.Key)
	}
	return q
}

// OnlyAbout reports whether the message that the user came from is the only one that changes.
func (p *entryPreview) OnlyAbout() bool {
	return p.About != nil && p.Helps && !p.Part && p.More == 0 && len(p.Changed) == 1 && p.Changed[0].ID == p.About.ID
}

// Verdict says whether the entry helps the message that the user came from.
func (p *entryPreview) Verdict() string {
	switch {
	case p.Allow && p.Already:
		return "The message that you came from passes without this entry, too."
	case p.Allow && p.Helps && p.Tagged:
		return "With this entry, the message that you came from is delivered without the tag."
	case p.Allow && p.Helps:
		return "With this entry, the message that you came from passes."
	case p.Allow && p.Tagged:
		return "Even with this entry, the message that you came from gets a tag."
	case p.Allow:
		return "Even with this entry, the message that you came from does not pass."
	case p.Already:
		return "The message that you came from is stopped without this entry, too."
	case p.Helps:
		return "The entry applies to the message that you came from."
	}
	return "The entry does not apply to the message that you came from."
}

// Reason says why the entry helps the message or not.
func (p *entryPreview) Reason() string {
	if p.Why == "" {
		return ""
	}
	return sentence(errors.New(p.Why))
}

// Short returns a time without its year and seconds.
func (p *entryPreview) Short(t time.Time) string { return t.Local().Format("Jan 2, 15:04") }
