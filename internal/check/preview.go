package check

import (
	"context"
	"fmt"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/listfile"
	"spamgate/blocklist/verdict"
	"spamgate/internal/config"
	"spamgate/internal/decisions"
	"spamgate/internal/setup"
)

// Proposed is an entry that a list would get, or lose.
type Proposed struct {
	List   string `json:"list"`
	Entry  string `json:"entry"`
	For    string `json:"for,omitempty"` // of a list by recipient
	Remove bool   `json:"remove,omitempty"`

	// About is the mail that the change is meant for; nil: none.
	About *decisions.Decision `json:"-"`
}

// Preview is what a change of a list would mean for mail that came before.
type Preview struct {
	Compared int `json:"compared"` // decisions that were judged with and without the change
	Hidden   int `json:"hidden"`   // that cannot be: the history does not show their addresses
	Others   int `json:"others"`   // that are about no sender, or of a listener that is gone

	Since   *time.Time `json:"since,omitempty"` // the oldest that was compared
	Changed []Changed  `json:"changed"`         // the first MaxChanged, in the order of the decisions
	More    int        `json:"more,omitempty"`  // further ones

	Effect // on Proposed.About
}

// Effect is what a change does to the mail that it is meant for.
type Effect struct {
	// Helps says whether the change does what it is meant to do: let the mail in, if need be
	// without a tag, or stop it. Why explains that in a sentence; it may be a caution.
	Helps bool   `json:"helps"`
	Why   string `json:"why,omitempty"`

	Already bool `json:"already,omitempty"` // the lists do that without the change
	Tagged  bool `json:"tagged,omitempty"`  // without the change the mail is delivered with a tag
}

// MaxChanged bounds Preview.Changed.
const MaxChanged = 200

// Changed is a decision that would be another one.
type Changed struct {
	ID            string         `json:"id"`
	Time          time.Time      `json:"time"`
	Sender        string         `json:"sender"`
	HeaderSenders []string       `json:"header_senders,omitempty"`
	Recipients    []string       `json:"recipients,omitempty"` // for whom it would; none: they are not known
	Count         int            `json:"count"`                // equal decisions, of which this is the first
	Then          string         `json:"then"`                 // what was done
	Was           verdict.Action `json:"was"`                  // what the lists say now
	Would         verdict.Action `json:"would"`                // what they would say
}

// Preview judges mail that came before with the lists as they are, and with a change. It asks
// nobody: of lists in DNS it knows what they said then, and proofs do not hold.
func (e *Engine) Preview(ctx context.Context, p Proposed, past []decisions.Decision) (*Preview, error) {
	c, err := e.compare(e.options.Config(), e.options.Set(), p)
	if err != nil {
		return nil, err
	}
	r := &Preview{Changed: []Changed{}}
	decided := decidedIDs(past)
	for i := range past {
		d := &past[i]
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if d.Event == verdict.EventMonitored && decided[d.ID] {
			continue // another decision about the same message is compared
		}
		if err := r.add(ctx, c, d); err != nil {
			return nil, err
		}
	}
	if p.About != nil {
		r.Effect, err = c.effect(ctx, p.About)
	}
	return r, err
}

// decidedIDs returns the ids of messages about which there is more than that an entry monitors.
func decidedIDs(past []decisions.Decision) map[string]bool {
	ids := map[string]bool{}
	for i := range past {
		if past[i].Event != verdict.EventMonitored {
			ids[past[i].ID] = true
		}
	}
	return ids
}

// add compares one decision.
func (r *Preview) add(ctx context.Context, c *comparison, d *decisions.Decision) error {
	if isHidden(d) {
		r.Hidden++
		return nil
	}
	was, judged, err := c.compare(ctx, d)
	switch {
	case err != nil:
		return err
	case was == nil:
		r.Others++
		return nil
	}
	r.Compared++
	if r.Since == nil || d.Time.Before(*r.Since) {
		r.Since = &d.Time
	}
	changed := Changed{ID: d.ID, Time: d.Time, Sender: d.Sender, HeaderSenders: d.HeaderSenders, Count: max(1, d.Count), Then: d.Action}
	switch {
	case !changed.differ(was.actions(), judged.actions()):
	case len(r.Changed) == MaxChanged:
		r.More++
	default:
		r.Changed = append(r.Changed, changed)
	}
	return nil
}

// differ sets what becomes of those recipients for whom the actions differ, and reports whether
// there are any.
func (c *Changed) differ(was, recipientActions []recipientAction) bool {
	differ := false
	for i, w := range was {
		if w.action == recipientActions[i].action {
			continue
		}
		differ = true
		c.Was, c.Would = max(c.Was, w.action), max(c.Would, recipientActions[i].action)
		if w.recipient != "" {
			c.Recipients = append(c.Recipients, w.recipient)
		}
	}
	return differ
}

// changeOf returns the change of a list.
func changeOf(c *config.Config, p Proposed) (blocklist.Change, error) {
	i := setup.ListIndex(c, p.List)
	if i < 0 {
		return blocklist.Change{}, fmt.Errorf("there is no list %q", p.List)
	}
	text := p.Entry
	if c.Lists[i].PerRecipient {
		if p.For == "" {
			return blocklist.Change{}, fmt.Errorf("list %s has entries for recipients: name one", p.List)
		}
		text = p.For + " " + text
	}
	entry, err := listfile.ParseEntry(text, setup.ListOptions(c.Lists[i]))
	return blocklist.Change{List: p.List, Entry: entry, Remove: p.Remove}, err
}

// comparison judges messages of the history with and without a change.
type comparison struct {
	engine   *Engine
	config   *config.Config
	set      *blocklist.Set
	changes  []blocklist.Change
	sessions map[string]*compared // by listener
}

// compare returns the comparison of lists with changes of them.
func (e *Engine) compare(c *config.Config, set *blocklist.Set, changes ...Proposed) (*comparison, error) {
	both := &comparison{engine: e, config: c, set: set, sessions: map[string]*compared{}}
	for _, p := range changes {
		change, err := changeOf(c, p)
		if err != nil {
			return nil, err
		}
		both.changes = append(both.changes, change)
	}
	_, err := set.Only(nil).With(both.changes...)
	return both, err
}

// compared is a listener or door that judges with and without the change; nil if it is gone.
type compared struct {
	*session
	with *blocklist.View
}

// of returns the listener or door of a decision, nil if it is gone.
func (c *comparison) of(d *decisions.Decision) (*compared, error) {
	if known, ok := c.sessions[d.Listener]; ok {
		return known, nil
	}
	c.sessions[d.Listener] = nil
	judged, err := findJudged(c.config, d.Listener)
	if err != nil {
		return nil, nil
	}
	k := &compared{session: c.engine.newSession(c.config, c.set, judged, Question{Listener: d.Listener, Offline: true, Past: true})}
	if err := k.readFiles(); err != nil {
		return nil, err
	}
	if k.with, err = k.judge.View().With(c.changes...); err != nil {
		return nil, err
	}
	c.sessions[d.Listener] = k
	return k, nil
}

// compare judges a message of the history with the lists as they are, and with the change. What
// cannot be judged is nil.
func (c *comparison) compare(ctx context.Context, d *decisions.Decision) (was, judged *judgedMessage, err error) {
	k, err := c.of(d)
	if k == nil || err != nil {
		return nil, nil, err
	}
	p, ok := k.newPast(d)
	if !ok {
		return nil, nil, nil
	}
	if was, err = k.judgePast(ctx, k.judge.View(), &p); err != nil {
		return nil, nil, err
	}
	judged, err = k.judgePast(ctx, k.with, &p)
	return was, judged, err
}
