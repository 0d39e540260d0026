package console

import (
	"net/url"
	"time"

	"spamgate/blocklist/listfile"
	"spamgate/internal/accounts"
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
	at, err := listfiles.ParsePlace(x.query("at"))
	if err != nil {
		return invalid(sentence(err))
	}
	l, err := listfiles.New(*v.Facts)
	if err == nil {
		v.Page, err = listfiles.Browse(x.r.Context(), l, at, pageEntries)
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
