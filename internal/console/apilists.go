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
	"spamgate/internal/operation"
)

// listOperations are about lists.
var listOperations = []row{
	op("lists", "GET", "/lists", accounts.SeeLists, "All lists with their state",
		ok("The lists"), (*exchange).apiLists),
	op("list", "GET", "/lists/{name}", accounts.SeeLists, "A list with its state",
		ok("The list"), (*exchange).apiList),
	op("entries", "GET", "/lists/{name}/entries", accounts.SeeLists, "Entries of a list, in the order of its files, or those that match an address",
		ok("A page of entries"), (*exchange).apiEntries,
		parameter{Name: "q", What: "An address, a domain or an entry: only the entries that match it, are it or, of a domain, below it, as they serve"},
		parameter{Name: "for", What: "A recipient, in a list by recipient: only the entries for it"},
		parameter{Name: "at", What: "next of the page before; not with q and for"},
		parameter{Name: "limit", What: "About how many: 1 to 1000, usually 100"}),
	op("addEntry", "POST", "/lists/{name}/entries", accounts.LetIn, "Add an entry to a managed list; it counts once this is answered",
		[]operation.Answer{{Status: http.StatusCreated, What: "It was added"}, {Status: http.StatusOK, What: "It was there: already listed, or its reason and end were changed (updated)"}}, (*exchange).apiAdd),
	op("removeEntry", "DELETE", "/lists/{name}/entries/{entry}", accounts.EditEntries, "Remove an entry from a managed list",
		ok("It was removed"), (*exchange).apiRemove,
		parameter{Name: "for", What: "The recipient, in a list by recipient"},
		parameter{Name: "reason", What: "Why, for the audit log"}),
	op("held", "GET", "/lists/{name}/held", accounts.SeeLists, "An update that is held, and what it would change; of a long list the gate compares in the background, so ask again while it is comparing",
		ok("The update"), (*exchange).apiHeld),
	op("acceptHeld", "POST", "/lists/{name}/held/accept", accounts.AcceptHeld, "Accept the update that is held: it becomes live",
		ok("It is live"), (*exchange).apiAccept),
	op("refuseHeld", "POST", "/lists/{name}/held/refuse", accounts.AcceptHeld, "Refuse the update that is held: the list is pinned to its live version",
		ok("The list is pinned"), (*exchange).apiRefuse),
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

func (x *exchange) apiLists(none) (apiLists, error) {
	s := x.console.Gate.Status()
	return apiLists{s.Generation, s.Lists}, nil
}

func (x *exchange) apiList(none) (admin.List, error) {
	if _, err := x.list(); err != nil {
		return admin.List{}, err
	}
	shown, err := x.shownListIn()
	return shown.List, err
}

// list returns the list that the path names.
func (x *exchange) list() (*config.List, error) { return x.console.list(x.r.PathValue("name")) }

// apiEntries returns entries of a list, in the order of its files.
func (x *exchange) apiEntries(none) (result apiEntries, err error) {
	l, err := x.list()
	if err != nil {
		return result, err
	}
	n, err := x.limit(100, listfiles.MaxPage)
	if err != nil {
		return result, err
	}
	if x.query("q") != "" || x.query("for") != "" {
		return x.matchingEntries(l)
	}
	place, err := listfiles.ParsePlace(x.query("at"))
	if err != nil {
		return result, invalid(sentence(err))
	}
	files, err := listfiles.New(*l)
	if err != nil {
		return result, conflict("%s", sentence(err))
	}
	page, err := listfiles.Browse(x.r.Context(), files, place, n)
	if err != nil {
		return result, err
	}
	result = apiEntries{Entries: make([]listfiles.EntryInfo, len(page.Entries)), Cut: page.Cut}
	for i, e := range page.Entries {
		result.Entries[i] = e.At()
	}
	if page.Next != nil {
		result.Next = page.Next.String()
	}
	return result, nil
}

// matchingEntries returns the entries that match the query.
func (x *exchange) matchingEntries(l *config.List) (found apiEntries, err error) {
	v := &listView{Facts: l, Query: x.query("q"), For: x.query("for")}
	v.Name = l.Name
	if err := x.searchList(v); err != nil {
		return found, err
	}
	if v.Problem != "" {
		return found, invalid(v.Problem)
	}
	found = apiEntries{Entries: []listfiles.EntryInfo{}, Cut: v.Incomplete}
	for _, row := range v.Rows {
		found.Entries = append(found.Entries, row.EntryInfo)
	}
	return found, nil
}

// apiAdd adds an entry.
func (x *exchange) apiAdd(wanted apiNewEntry) (apiEdited, error) {
	l, err := x.list()
	if err != nil {
		return apiEdited{}, err
	}
	until, err := parseEnd(wanted.Until, x.console.Now())
	if err != nil {
		return apiEdited{}, err
	}
	result, err := x.add(l, managed.NewEntry{Name: managed.Name{Entry: wanted.Entry, For: wanted.For}, Reason: wanted.Reason, Until: until})
	if err == nil && result.Entries[0].What != listedit.Added {
		x.status = http.StatusOK
	}
	return edited(result, err)
}

// apiRemove removes an entry.
func (x *exchange) apiRemove(none) (apiEdited, error) {
	l, err := x.list()
	if err != nil {
		return apiEdited{}, err
	}
	name, why := managed.Name{Entry: x.r.PathValue("entry"), For: x.query("for")}, x.query("reason")
	if err := x.console.mayRemove(x.who, l, name); err != nil {
		return apiEdited{}, err
	}
	if err := checkReason(why); err != nil {
		return apiEdited{}, err
	}
	return edited(x.console.Editor.Remove(x.r.Context(), by(x.who), l.Name, []managed.Name{name}, managed.Options{Why: why}))
}

// edited returns what became of the only entry of an edit, or of all that an undo is about.
func edited(r managed.Result, err error) (apiEdited, error) {
	switch {
	case err != nil:
		return apiEdited{}, err
	case r.Undone > 0:
		all := managed.Outcome{EntryInfo: listfiles.EntryInfo{List: r.List}, What: managed.Undid, Change: r.Change}
		return apiEdited{all, r.Live, r.Undone, r.Stay, r.Entries[:min(r.Stay, len(r.Entries))]}, nil
	}
	return apiEdited{Outcome: r.Entries[0], Live: r.Live}, nil
}

// apiHeld returns what is held of a list. The comparison is made as for the page.
func (x *exchange) apiHeld(none) (held apiHeld, err error) {
	v, l, err := x.heldView()
	if err != nil {
		return held, err
	}
	if !v.Held {
		return held, failure{http.StatusNotFound, "Nothing is held of the list " + l.Name + "."}
	}
	held = apiHeld{List: l.Name, Sum: v.Sum, Why: v.Error, Since: v.ErrorSince, Acceptable: v.Acceptable}
	compare := func(ctx context.Context) (any, error) { return x.console.compare(ctx, l) }
	work := x.work(v.key(), v.Entries+int(v.Size/20), compare)
	if work == nil {
		if err := x.console.works.begin(x.console.ending, v.key(), x.console.Now, compare); err != nil {
			return held, err
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
func (x *exchange) apiAccept(body apiAccept) (admin.Accepted, error) {
	v, l, err := x.heldView()
	if err != nil {
		return admin.Accepted{}, err
	}
	if body.Sum != "" && body.Sum != v.Sum {
		return admin.Accepted{}, conflict("The update of the list %s is no longer the one with this sum.", l.Name)
	}
	return x.accept(l, body.Why)
}

// apiRefuse pins a list to its live version.
func (x *exchange) apiRefuse(body apiWhy) (admin.PinResult, error) {
	v, l, err := x.heldView()
	if err != nil {
		return admin.PinResult{}, err
	}
	if !v.Held {
		return admin.PinResult{}, conflict("Nothing is held of the list %s.", l.Name)
	}
	return x.pinList(l, admin.PinRequest{Why: body.Why})
}

func noList(name string) error {
	return failure{http.StatusNotFound, fmt.Sprintf("There is no list %q.", name)}
}
