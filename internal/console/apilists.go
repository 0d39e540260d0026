package console

import (
	"fmt"
	"net/http"

	"spamgate/internal/accounts"
	"spamgate/internal/admin"
	"spamgate/internal/config"
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
		method: "GET", path: "/lists/{name}/entries", may: accounts.SeeLists, id: "entries", summary: "Entries of a list, in the order of its files",
		query: []parameter{
			{name: "at", what: "next of the page before"},
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
	Cut     bool                  `json:"cut,omitempty"`  // there are more, which can only be read from the file's beginning
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
}

// apiWhy says why something is done.
type apiWhy struct {
	Why string `json:"why,omitempty"` // for the audit log
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
	until, err := parseUntil(wanted.Until, x.console.Now())
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
	return edited(x.console.Editor.Remove(x.r.Context(), by(x.who), l.Name, []managed.Name{name}, managed.Options{Why: x.query("reason")}))
}

// edited returns what became of the only entry of an edit.
func edited(r managed.Result, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return apiEdited{r.Entries[0], r.Live}, nil
}

func noList(name string) error {
	return failure{http.StatusNotFound, fmt.Sprintf("There is no list %q.", name)}
}
