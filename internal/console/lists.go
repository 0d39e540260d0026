package console

import (
	"net/http"
	"time"

	"spamgate/blocklist/verdict"
	"spamgate/internal/accounts"
	"spamgate/internal/admin"
	"spamgate/internal/config"
	"spamgate/internal/report"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

var listRoutes = []route{
	{"GET", "/lists", accounts.SeeLists, (*exchange).listsPage},
	{"GET", "/overlap", accounts.SeeLists, (*exchange).overlap},
	{"POST", "/overlap", accounts.SeeLists, (*exchange).startOverlap},
	{"GET", "/lists/{name}", accounts.SeeLists, (*exchange).listPage},
	{"GET", "/lists/{name}/export", accounts.SeeLists, (*exchange).exportList},
	{"GET", "/lists/{name}/held", accounts.SeeLists, (*exchange).held},
	{"POST", "/lists/{name}/held", accounts.SeeLists, (*exchange).startHeld},
	{"POST", "/lists/{name}/accept", accounts.AcceptHeld, (*exchange).acceptHeld},
	{"POST", "/lists/{name}/pin", accounts.Pin, (*exchange).pin},
	{"POST", "/lists/{name}/unpin", accounts.Pin, (*exchange).unpin},
	{"GET", "/lists/{name}/unused", accounts.SeeLists, (*exchange).unused},
	{"POST", "/lists/{name}/unused", accounts.SeeLists, (*exchange).startUnused},
	{"GET", "/lists/{name}/versions", accounts.SeeLists, (*exchange).versions},
	{"GET", "/lists/{name}/rollback", accounts.Rollback, (*exchange).askRollback},
	{"POST", "/lists/{name}/rollback", accounts.Rollback, (*exchange).rollback},
	{"GET", "/lists/{name}/remove", accounts.EditEntries, (*exchange).askRemove},
	{"POST", "/lists/{name}/remove", accounts.EditEntries, (*exchange).remove},
}

// shownList is a list as pages show it.
type shownList struct {
	admin.List
	Does    string // "refuses"
	State   string // "ok", "held", "pinned", "error" ...
	Class   string // of the badge
	Source  string // where it comes from
	Bytes   int64  // of its files
	InDNS   bool
	Updated time.Time
	Age     string // since then, such as "3 d"
}

// newShownList adds what pages show to the state of a list.
func newShownList(l admin.List, now time.Time) shownList {
	s := shownList{List: l, Does: does(&l), InDNS: l.DNS != nil, Source: text.ShownURL(l.URL)}
	s.State, s.Class = stateOf(&l)
	if updated := report.LastUpdate(&l); updated != nil {
		s.Updated, s.Age = *updated, term.Age(now.Sub(*updated))
	}
	for _, f := range l.Files {
		s.Bytes += f.Bytes
	}
	switch {
	case s.Managed:
		s.Source = "kept by the gate"
	case s.InDNS:
		s.Source = l.DNS.Zone
	case s.Source == "":
		s.Source = l.Path
	}
	return s
}

// does says what a match of a list does to a message.
func does(l *admin.List) string {
	s := verdict.ActionOf(l.Action).Does() // an allow list has none, and accepts
	if l.HeaderAction != "" {
		s += ", in headers " + verdict.ActionOf(l.HeaderAction).Does()
	}
	if l.ProvenBy != "" {
		s += ", if proven"
	}
	if l.PerRecipient {
		s += ", by recipient"
	}
	return s
}

// stateOf returns the state of a list in a word, and the class of its badge.
func stateOf(l *admin.List) (state, class string) {
	switch {
	case l.DNS != nil && l.DNS.Problem() != "":
		return l.DNS.State, "error"
	case l.DNS != nil && l.DNS.Warning != "":
		return "warning", "warn"
	case l.Error != "" && !l.LastGood:
		return "no version", "error"
	case l.Pinned != nil:
		return "pinned", "tag"
	case l.Held:
		return "held", "warn"
	case l.Error != "":
		return "error", "error"
	case l.Fetch != nil && l.Fetch.Error != "":
		return "not fetched", "warn"
	case l.ListsNobody != "":
		return "lists nobody", "warn"
	}
	return "ok", "accept"
}

// listsView is what the page of all lists shows.
type listsView struct {
	Done    *notice
	Lists   []shownList
	Entries int
	Filter  admin.Filter
	LetIn   bool // the account may
	Block   bool
}

func (x *exchange) listsPage() error {
	status, now := x.console.Gate.Status(), x.console.Now()
	v := listsView{Filter: status.Filter, LetIn: x.who.MaySome(accounts.LetIn), Block: x.who.MaySome(accounts.Block)}
	for _, l := range status.Lists {
		v.Lists = append(v.Lists, newShownList(l, now))
		v.Entries += l.Entries
	}
	var err error
	if v.Done, err = x.notice(); err != nil {
		return err
	}
	return x.render("lists", view{Title: "Lists", Nav: "/lists", Data: v})
}

// listTab is a page about one list.
type listTab struct {
	shownList
	Tab  string
	Done *notice
}

// listTab returns the beginning of a page about the list in the path, with its configuration. A list
// in DNS is a failure.
func (x *exchange) listTab(tab string) (t listTab, l *config.List, err error) {
	t.Tab = tab
	if t.shownList, err = x.shownListIn(); err == nil {
		l, err = x.withFiles()
	}
	return t, l, err
}

// shownListIn returns the list in the path with its state.
func (x *exchange) shownListIn() (shownList, error) {
	name := x.r.PathValue("name")
	for _, l := range x.console.Gate.Status().Lists {
		if l.Name == name {
			return newShownList(l, x.console.Now()), nil
		}
	}
	return shownList{}, noList(name)
}

// withFiles returns the list in the path. A list in DNS is a failure.
func (x *exchange) withFiles() (*config.List, error) {
	l, err := x.list()
	if err == nil && l.InDNS() {
		err = failure{http.StatusNotFound, "The list " + l.Name + " is in DNS: it has no entries, files and versions here."}
	}
	return l, err
}
