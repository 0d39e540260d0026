package console

import (
	"context"
	"net/url"
	"time"

	"spamgate/blocklist/listfile"
	"spamgate/internal/accounts"
	"spamgate/internal/check"
	"spamgate/internal/config"
	"spamgate/internal/listfiles"
	"spamgate/internal/managed"
)

// entryRow is an entry of a list.
type entryRow struct {
	listfiles.EntryInfo
	Over    bool            // it has ended
	Ends    string          // when it ends, short
	LeftOut string          // why the gate leaves it out
	Added   *managed.Change // who added it, if that is known
	Remove  string          // the path of the form; "" if the account cannot remove it here
}

// listView is what the page of a list shows.
type listView struct {
	listTab
	Facts *config.List

	Add     string // the path of the form to add an entry; "" if the account may not
	Removes bool   // the account may remove entries

	// The entries of a page, or those that were found.
	Rows    []entryRow
	Page    listfiles.Page
	Path    string            // of the file
	Links   map[string]string // to other pages
	Problem string            // why there are no entries to show

	Query, For string
	Searched   bool
	Incomplete bool // the search was ended before its end
}

// pageEntries is the number of entries on a page.
const pageEntries = 100

func (x *exchange) listPage() error {
	shown, err := x.shownListIn()
	if err != nil {
		return err
	}
	v := listView{listTab: listTab{shownList: shown, Tab: "entries"}, Query: x.query("q"), For: x.query("for")}
	v.Searched = v.Query != "" || v.For != ""
	if v.Facts, err = x.list(); err != nil {
		return err
	}
	if v.Done, err = x.notice(); err != nil {
		return err
	}
	if !v.InDNS {
		if err := x.listEntries(&v); err != nil {
			return err
		}
	}
	return x.render("list", view{Title: v.Name, Nav: "/lists", Data: v})
}

// listEntries adds the entries to the page of a list.
func (x *exchange) listEntries(v *listView) error {
	if v.Managed {
		v.Removes = x.who.May(accounts.EditEntries)
		action := accounts.Block
		if v.Type == "allow" {
			action = accounts.LetIn
		}
		if x.who.May(action) {
			v.Add = "/entry/new?" + url.Values{"type": {v.Type}, "list": {v.Name}}.Encode()
		}
	}
	show := x.browseList
	if v.Searched {
		show = x.searchList
	}
	if err := show(v); err != nil {
		return err
	}
	x.addAdded(v)
	return nil
}

// browseList adds a page of entries.
func (x *exchange) browseList(v *listView) error {
	place, err := listfiles.ParsePlace(x.query("at"))
	if err != nil {
		return invalid(sentence(err))
	}
	l, err := listfiles.New(*v.Facts)
	if err == nil {
		v.Page, err = listfiles.Browse(x.r.Context(), l, place, pageEntries)
	}
	if err != nil {
		v.Problem = sentence(err)
		return nil
	}
	v.Path = l.Paths[v.Page.File]
	guarded := listfiles.NewProtection(x.console.Config())
	for _, e := range v.Page.Entries {
		row := x.entryRow(v, e.At(), e.Entry)
		if why := guarded.LeftOut(l, e.Entry); why.Omitted() {
			row.LeftOut = why.What()
		}
		v.Rows = append(v.Rows, row)
	}
	v.Links = pageLinks("/lists/"+url.PathEscape(l.Name), v.Page, len(l.Paths))
	return nil
}

// pageLinks returns the links from a page of a list to the others; nil if there are none.
func pageLinks(path string, p listfiles.Page, files int) map[string]string {
	if p.Before == nil && p.Next == nil {
		return nil
	}
	links := map[string]string{}
	if p.Before != nil {
		links["first"], links["before"] = path, path+"?at="+p.Before.String()
	}
	if p.Next != nil {
		links["next"], links["last"] = path+"?at="+p.Next.String(), path+"?at="+listfiles.LastPage(files-1).String()
	}
	return links
}

// entryRow returns an entry of a list as a row.
func (x *exchange) entryRow(v *listView, info listfiles.EntryInfo, e listfile.Entry) entryRow {
	row := entryRow{EntryInfo: info}
	if e.Until != 0 {
		end := time.Unix(e.Until, 0)
		row.Over, row.Ends = !end.After(x.console.Now()), end.Local().Format("2006-01-02 15:04")
	}
	if v.Removes {
		q := url.Values{"entry": {info.Entry}}
		if info.For != "" {
			q.Set("for", info.For)
		}
		row.Remove = "/lists/" + url.PathEscape(v.Name) + "/remove?" + q.Encode()
	}
	return row
}

// addedTime bounds the search for who added the entries of a page, and addedChanges the changes
// that it looks at.
const (
	addedTime    = 40 * time.Millisecond
	addedChanges = 5000
)

// addAdded adds to the entries of a managed list who added them, as far as the newest changes
// tell.
func (x *exchange) addAdded(v *listView) {
	if !v.Managed || len(v.Rows) == 0 {
		return
	}
	ctx, stop := context.WithTimeout(x.r.Context(), addedTime)
	defer stop()
	missing := map[string][]*entryRow{}
	for i := range v.Rows {
		row := &v.Rows[i]
		missing[row.For+"\t"+row.Entry] = append(missing[row.For+"\t"+row.Entry], row)
	}
	// What is not found is not shown, whether it took too long or is not there.
	_, _ = x.console.Editor.Changes(ctx, managed.ChangesQuery{List: v.Name, Limit: addedChanges, Want: func(c *managed.Change) bool {
		if name := c.For + "\t" + c.Entry; len(c.After) > 0 {
			for _, row := range missing[name] {
				by := *c
				row.Added = &by
			}
			delete(missing, name)
		}
		if len(missing) == 0 {
			stop()
		}
		return false
	}})
}

// removeView is what the form to remove an entry shows.
type removeView struct {
	List    string
	Seen    bool // the account may see the list
	Back    string
	Preview *entryPreview
	Entry   listfiles.EntryInfo
}

// wantedRemoval returns the list in the path and the entry that is to be removed.
func (x *exchange) wantedRemoval() (*config.List, managed.Name, error) {
	name := managed.Name{Entry: x.r.FormValue("entry"), For: x.r.FormValue("for")}
	l, err := x.list()
	if err == nil {
		err = x.console.mayRemove(x.who, l, name)
	}
	return l, name, err
}

func (x *exchange) askRemove() error {
	l, name, err := x.wantedRemoval()
	if err != nil {
		return err
	}
	result, err := x.console.Editor.Remove(x.r.Context(), by(x.who), l.Name, []managed.Name{name}, managed.Options{DryRun: true})
	if err != nil {
		return err
	}
	v := removeView{List: l.Name, Seen: x.who.May(accounts.SeeLists), Back: x.backPath("/lists/" + url.PathEscape(l.Name)), Entry: result.Entries[0].EntryInfo}
	e, err := parseEntry(l, name)
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(x.r.Context(), previewTime)
	defer stop()
	v.Preview = x.previewed(x.preview(ctx, check.Proposed{List: l.Name, Entry: v.Entry.Entry, For: v.Entry.For, Remove: true}, "", "", x.pastOfEntry(e)))
	return x.render("remove", view{Title: "Remove an entry", Nav: "/lists", Data: v})
}

func (x *exchange) remove() error {
	l, name, err := x.wantedRemoval()
	if err != nil {
		return err
	}
	why, err := x.reason()
	if err != nil {
		return err
	}
	result, err := x.console.Editor.Remove(x.r.Context(), by(x.who), l.Name, []managed.Name{name}, managed.Options{Why: why})
	if err != nil {
		return err
	}
	x.logChange("remove", result)
	return x.redirect(withNotice(x.backPath("/lists/"+url.PathEscape(l.Name)), result))
}

// logChange logs a change of an entry.
func (x *exchange) logChange(command string, r managed.Result) {
	for _, e := range r.Entries {
		x.console.Logger.Info("console change", "command", command, "user", x.who.Name, "client", x.clientAddress(), "list", r.List, "entry", e.Text(), "change", e.Change)
	}
}

// backPath returns the path of the page that a form came from, or another one if it names none.
// An account that may not see lists goes to its first page.
func (x *exchange) backPath(otherwise string) string {
	if back := localPath(x.r.FormValue("back")); back != "/" {
		return back
	}
	if !x.who.MaySome(accounts.SeeLists) {
		return "/"
	}
	return otherwise
}
