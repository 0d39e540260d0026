package console

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"spamgate/internal/accounts"
	"spamgate/internal/admin"
	"spamgate/internal/config"
	"spamgate/internal/listcompare"
	"spamgate/internal/listedit"
	"spamgate/internal/listfiles"
	"spamgate/internal/managed"
)

// listOperations are about lists.
var listOperations = []operation{
	{
		method: "GET", path: "/lists", may: accounts.SeeLists, id: "lists", summary: "All lists with their state",
		answers: []answer{{http.StatusOK, "The lists", apiLists{}}},
		serve:   (*exchange).apiLists,
	},
	{
		method: "GET", path: "/lists/{name}", may: accounts.SeeLists, id: "list", summary: "A list with its state",
		answers: []answer{{http.StatusOK, "The list", admin.List{}}},
		serve:   (*exchange).apiList,
	},
	{
		method: "GET", path: "/lists/{name}/entries", may: accounts.SeeLists, id: "entries", summary: "Entries of a list, in the order of its files, or those that match an address",
		query: []parameter{
			{name: "q", what: "An address, a domain or an entry: only the entries that match it, are it or, of a domain, below it, as they serve"},
			{name: "for", what: "A recipient, in a list by recipient: only the entries for it"},
			{name: "at", what: "next of the page before; not with q and for"},
			{name: "limit", what: "About how many: 1 to 1000, usually 100"},
		},
		answers: []answer{{http.StatusOK, "A page of entries", apiEntries{}}},
		serve:   (*exchange).apiEntries,
	},
	{
		method: "POST", path: "/lists/{name}/entries", may: accounts.LetIn, id: "addEntry", summary: "Add an entry to a managed list; it counts once this is answered",
		body: apiNewEntry{},
		answers: []answer{
			{http.StatusCreated, "It was added", apiEdited{}},
			{http.StatusOK, "It was there: already listed, or its reason and end were changed (updated)", apiEdited{}},
		},
		serve: (*exchange).apiAdd,
	},
	{
		method: "DELETE", path: "/lists/{name}/entries/{entry}", may: accounts.EditEntries, id: "removeEntry", summary: "Remove an entry from a managed list",
		query: []parameter{
			{name: "for", what: "The recipient, in a list by recipient"},
			{name: "reason", what: "Why, for the audit log"},
		},
		answers: []answer{{http.StatusOK, "It was removed", apiEdited{}}},
		serve:   (*exchange).apiRemove,
	},
	{
		method: "GET", path: "/lists/{name}/held", may: accounts.SeeLists, id: "held", summary: "An update that is held, and what it would change; of a long list the gate compares in the background, so ask again while it is comparing",
		answers: []answer{{http.StatusOK, "The update", apiHeld{}}},
		serve:   (*exchange).apiHeld,
	},
	{
		method: "POST", path: "/lists/{name}/held/accept", may: accounts.AcceptHeld, id: "acceptHeld", summary: "Accept the update that is held: it becomes live",
		body:    apiAccept{},
		answers: []answer{{http.StatusOK, "It is live", admin.Accepted{}}},
		serve:   (*exchange).apiAccept,
	},
	{
		method: "POST", path: "/lists/{name}/held/refuse", may: accounts.AcceptHeld, id: "refuseHeld", summary: "Refuse the update that is held: the list is pinned to its live version",
		body:    apiWhy{},
		answers: []answer{{http.StatusOK, "The list is pinned", admin.PinResult{}}},
		serve:   (*exchange).apiRefuse,
	},
}

// apiLists are all lists.
type apiLists struct {
	Generation uint64       `json:"generation"` // counts changes of the lists
	Lists      []admin.List `json:"lists"`
}

// apiEntries is a page of entries.
type apiEntries struct {
	Entries []listfiles.EntryInfo `json:"entries"`
	Next    string                `json:"next,omitempty"` // the place of the next page
	Cut     bool                  `json:"cut,omitempty"`  // there are more than are shown
}

// apiNewEntry is an entry to add.
type apiNewEntry struct {
	Entry  string `json:"entry"`            // as a list has it: "user@example.com", "example.com", "@example.com"
	For    string `json:"for,omitempty"`    // the recipient, in a list by recipient
	Reason string `json:"reason,omitempty"` // what refused clients may see
	Until  string `json:"until,omitempty"`  // when it ends: RFC 3339, a day, or a duration from now such as "1h"; "": never
}

// apiEdited is what became of an entry.
type apiEdited struct {
	managed.Outcome
	managed.Live

	// Of the undo of all that a command changed: how many entries are as before, and the first of
	// those that stay, with the reason. The entry is not set.
	Undone int               `json:"undone,omitempty"`
	Stay   int               `json:"stay,omitempty"`
	Stays  []managed.Outcome `json:"stays,omitempty"`
}

// apiWhy says why something is done.
type apiWhy struct {
	Why string `json:"why,omitempty"` // for the audit log
}

// apiAccept says which update is accepted, and why.
type apiAccept struct {
	Sum string `json:"sum,omitempty"` // of the update that was looked at: another one is not accepted
	Why string `json:"why,omitempty"` // for the audit log
}

// apiHeld is an update that is held.
type apiHeld struct {
	List       string     `json:"list"`
	Sum        string     `json:"sum"`             // names the update
	Why        string     `json:"why"`             // it is held
	Since      *time.Time `json:"since,omitempty"` // it is held
	Acceptable bool       `json:"acceptable"`      // accepting it makes it live

	Comparing bool              `json:"comparing,omitempty"` // the difference is not known yet
	Diff      *listcompare.Diff `json:"difference,omitempty"`
}

func (x *exchange) apiLists() (any, error) {
	s := x.console.Gate.Status()
	return apiLists{s.Generation, s.Lists}, nil
}

func (x *exchange) apiList() (any, error) {
	l, err := x.list()
	if err != nil {
		return nil, err
	}
	for _, s := range x.console.Gate.Status().Lists {
		if s.Name == l.Name {
			return s, nil
		}
	}
	return nil, noList(l.Name)
}

// list returns the list that the path names.
func (x *exchange) list() (*config.List, error) { return x.console.list(x.r.PathValue("name")) }

// apiEntries returns entries of a list.
func (x *exchange) apiEntries() (any, error) {
	l, err := x.list()
	if err != nil {
		return nil, err
	}
	n, err := x.limit(100, listfiles.MaxPage)
	if err != nil {
		return nil, err
	}
	if x.query("q") != "" || x.query("for") != "" {
		return x.matchingEntries(l)
	}
	at, err := listfiles.ParsePlace(x.query("at"))
	if err != nil {
		return nil, invalid(sentence(err))
	}
	files, err := listfiles.New(*l)
	if err != nil {
		return nil, conflict("%s", sentence(err))
	}
	page, err := listfiles.Browse(x.r.Context(), files, at, n)
	if err != nil {
		return nil, err
	}
	result := apiEntries{Entries: entryInfos(page.Entries), Cut: page.Cut}
	if page.Next != nil {
		result.Next = page.Next.String()
	}
	return result, nil
}

// matchingEntries returns the entries that match the query.
func (x *exchange) matchingEntries(l *config.List) (any, error) {
	v := &listView{Facts: l, Query: x.query("q"), For: x.query("for")}
	v.Name = l.Name
	if err := x.searchList(v); err != nil {
		return nil, err
	}
	if v.Problem != "" {
		return nil, invalid(v.Problem)
	}
	found := apiEntries{Entries: []listfiles.EntryInfo{}, Cut: v.Incomplete}
	for _, row := range v.Rows {
		found.Entries = append(found.Entries, row.EntryInfo)
	}
	return found, nil
}

// entryInfos returns entries as the API shows them.
func entryInfos(all []listfiles.Located) []listfiles.EntryInfo {
	shown := make([]listfiles.EntryInfo, len(all))
	for i, e := range all {
		shown[i] = e.At()
	}
	return shown
}

// apiAdd adds an entry.
func (x *exchange) apiAdd() (any, error) {
	l, err := x.list()
	if err != nil {
		return nil, err
	}
	var wanted apiNewEntry
	if err := x.body(&wanted); err != nil {
		return nil, err
	}
	until, err := parseEnd(wanted.Until, x.console.Now())
	if err != nil {
		return nil, err
	}
	result, err := x.add(l, managed.NewEntry{Name: managed.Name{Entry: wanted.Entry, For: wanted.For}, Reason: wanted.Reason, Until: until})
	if err == nil && result.Entries[0].What == listedit.Added {
		x.status = http.StatusCreated
	} else {
		x.status = http.StatusOK
	}
	return edited(result, err)
}

// apiRemove removes an entry.
func (x *exchange) apiRemove() (any, error) {
	l, err := x.list()
	if err != nil {
		return nil, err
	}
	name := managed.Name{Entry: x.r.PathValue("entry"), For: x.query("for")}
	if err := x.console.mayRemove(x.who, l, name); err != nil {
		return nil, err
	}
	why := x.query("reason")
	if err := checkReason(why); err != nil {
		return nil, err
	}
	return edited(x.console.Editor.Remove(x.r.Context(), by(x.who), l.Name, []managed.Name{name}, managed.Options{Why: why}))
}

// edited returns what became of the only entry of an edit, or of all that an undo is about.
func edited(r managed.Result, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	if r.Undone > 0 {
		all := managed.Outcome{EntryInfo: listfiles.EntryInfo{List: r.List}, What: managed.Undid, Change: r.Change}
		return apiEdited{all, r.Live, r.Undone, r.Stay, r.Entries[:min(r.Stay, len(r.Entries))]}, nil
	}
	return apiEdited{Outcome: r.Entries[0], Live: r.Live}, nil
}

// apiHeld returns what is held of a list. The comparison is made as for the page.
func (x *exchange) apiHeld() (any, error) {
	v, l, err := x.heldView()
	if err != nil {
		return nil, err
	}
	if !v.Held {
		return nil, failure{http.StatusNotFound, "Nothing is held of the list " + l.Name + "."}
	}
	held := apiHeld{List: l.Name, Sum: v.Sum, Why: v.Error, Since: v.ErrorSince, Acceptable: v.Acceptable}
	compare := func(ctx context.Context) (any, error) { return x.console.compare(ctx, l) }
	work := x.work(v.key(), v.Entries+int(v.Size/20), compare)
	if work == nil {
		if err := x.console.works.begin(x.console.ending, v.key(), x.console.Now, compare); err != nil {
			return nil, err
		}
	}
	held.Comparing = !work.Done()
	if held.Comparing || work.err != nil {
		return held, nil
	}
	diff := *work.result.(*listcompare.Diff)
	diff.Differences = append([]listcompare.Difference{}, diff.Differences...)
	held.Diff = &diff
	return held, nil
}

// apiAccept accepts what is held of a list.
func (x *exchange) apiAccept() (any, error) {
	v, l, err := x.heldView()
	if err != nil {
		return nil, err
	}
	var body apiAccept
	if err := x.body(&body); err != nil {
		return nil, err
	}
	if body.Sum != "" && body.Sum != v.Sum {
		return nil, conflict("The update of the list %s is no longer the one with this sum.", l.Name)
	}
	return x.accept(l, body.Why)
}

// apiRefuse pins a list to its live version.
func (x *exchange) apiRefuse() (any, error) {
	v, l, err := x.heldView()
	if err != nil {
		return nil, err
	}
	var body apiWhy
	if err := x.body(&body); err != nil {
		return nil, err
	}
	if !v.Held {
		return nil, conflict("Nothing is held of the list %s.", l.Name)
	}
	return x.pinList(l, admin.PinRequest{Why: body.Why, SudoUser: x.who.Name})
}

func noList(name string) error {
	return failure{http.StatusNotFound, fmt.Sprintf("There is no list %q.", name)}
}
