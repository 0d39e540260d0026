package console

import (
	"net/url"
	"time"

	"spamgate/internal/accounts"
	"spamgate/internal/admin"
	"spamgate/internal/decisions"
	"spamgate/internal/report"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

var nowRoutes = []route{{"GET", "/now", accounts.SeeTotals, (*exchange).now}}

// nowRefresh is how often the page loads again.
const nowRefresh = time.Minute

// nowPage is what the page Now shows.
type nowPage struct {
	Done *notice

	Span  span
	Spans []span

	Series  *series // nil: there is no history
	Figures []kind

	Health   *admin.Health // nil: it is being checked
	Problems []string
	Fleet    []string // what is wrong with the gate's place in its fleet
	Status   admin.Status
	Lists    []nowList
	History  *decisions.Stats
	Reach    *time.Time // of the history; nil: it is empty
}

// nowList is a list in short.
type nowList struct {
	admin.List
	State   outcome // of a badge
	Age     string
	At      *time.Time // of which Age is
	Path    string
	Held    string // the path of the update that is held
	Problem string
}

func (x *exchange) now() error {
	p := nowPage{Spans: spans, Span: spans[1]}
	for _, s := range spans {
		if s.Name == x.query("range") {
			p.Span = s
		}
	}
	if err := x.fillSeries(&p); err != nil {
		return err
	}
	if p.Health, _ = x.console.health.get(x.console.Now()); p.Health != nil {
		p.Problems = healthProblems(p.Health)
		if f := p.Health.Fleet; f != nil {
			p.Fleet, _ = first(f.Problems, maxFleetProblems)
		}
	}
	p.Status = x.console.Gate.Status()
	for _, l := range p.Status.Lists {
		p.Lists = append(p.Lists, x.nowList(l))
	}
	if recorder := x.console.recorder(); recorder != nil {
		stats := recorder.Stats()
		p.History = &stats
	}
	return x.render("now", view{Title: "Now", Nav: "/now", Data: p, Refresh: nowRefresh})
}

// fillSeries fills in what was decided over time, and how far the history reaches back.
func (x *exchange) fillSeries(p *nowPage) error {
	if !x.console.keepsHistory() {
		return nil
	}
	now := x.console.Now()
	begin := p.Span.begin(now)
	totals, err := x.console.History.Totals(x.r.Context(), begin, now.Add(time.Minute))
	if err != nil {
		return err
	}
	p.Series = newSeries(p.Span, begin, totals)
	for i, s := range p.Series.Lists {
		p.Series.Lists[i].Path = x.ownMail("list", s.Name, p.Span)
	}
	if p.Reach, err = x.historyReach(); err != nil {
		return err
	}
	for _, k := range p.Series.Kinds {
		if k.Sum > 0 || k.Action == "accept" || k.Action == "reject" || k.Action == "defer" {
			k.Path = x.ownMail("action", k.Action, p.Span)
			p.Figures = append(p.Figures, k)
		}
	}
	return nil
}

// historyReach returns the time of the oldest decision in this gate's history, or nil.
func (x *exchange) historyReach() (*time.Time, error) {
	newest, err := x.console.History.Find(x.r.Context(), decisions.Query{Limit: 1})
	return newest.Reach, err
}

// ownMail returns the path of a search for this gate's mail in a span.
func (x *exchange) ownMail(field, value string, s span) string {
	v := url.Values{field: {value}, "since": {s.Since}}
	if x.console.inFleet() {
		v.Set("gate", x.console.gateName())
	}
	return mailPath("/mail", v)
}

// healthProblems returns what is wrong with the gate, in words.
func healthProblems(h *admin.Health) (all []string) {
	if h.Error != "" {
		all = append(all, h.Error)
	}
	if h.Mail != nil {
		all = append(all, h.Mail.Problems...)
	}
	if h.Lists != nil {
		all = append(all, h.Lists.Problems...)
	}
	if h.State != nil && h.State.Problem != "" {
		all = append(all, h.State.Problem)
	}
	return all
}

// nowList returns a list in short.
func (x *exchange) nowList(l admin.List) nowList {
	n := nowList{List: l, State: outcome{"accept", "ok"}, Path: "/lists/" + url.PathEscape(l.Name), Problem: l.Error}
	switch {
	case l.DNS != nil && l.DNS.Problem() != "":
		n.State, n.Problem = outcome{"warn", "not asked"}, l.DNS.Problem()
	case l.Held:
		n.State = outcome{"warn", "update held"}
		n.Held = n.Path + "/held"
	case l.Error != "":
		n.State = outcome{"error", "error"}
	case l.Pinned != nil:
		n.State = outcome{"warn", "pinned"}
	}
	if n.Problem == "" && l.ListsNobody != "" {
		n.State, n.Problem = outcome{"warn", "lists nobody"}, l.ListsNobody
	}
	if n.Problem == "" && l.Invalid > 0 {
		n.Problem = text.Count(l.Invalid, "invalid line", "invalid lines")
	}
	if n.At = report.LastUpdate(&l); n.At != nil {
		n.Age = term.Age(x.console.Now().Sub(*n.At))
	}
	return n
}
