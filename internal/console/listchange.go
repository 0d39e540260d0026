package console

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"spamgate/blocklist/store"
	"spamgate/internal/accounts"
	"spamgate/internal/check"
	"spamgate/internal/config"
	"spamgate/internal/listfiles"
	"spamgate/internal/managed"
)

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
	would, err := x.console.Editor.Remove(x.r.Context(), by(x.who), l.Name, []managed.Name{name}, managed.Options{DryRun: true})
	if err != nil {
		return err
	}
	v := removeView{List: l.Name, Seen: x.who.May(accounts.SeeLists), Back: x.backPath("/lists/" + url.PathEscape(l.Name)), Entry: would.Entries[0].EntryInfo}
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

// rollbackView is what the form to serve an earlier version shows.
type rollbackView struct {
	listTab
	Version store.VersionInfo
	Restore bool // else the list is pinned
	Drops   []managed.Change
}

func (x *exchange) askRollback() error {
	tab, _, err := x.listTab("versions")
	if err != nil {
		return err
	}
	v := rollbackView{listTab: tab, Restore: tab.Managed}
	if v.Version, err = x.findVersion(v.Name, x.query("version")); err != nil {
		return err
	}
	if v.Restore {
		if v.Drops, err = managed.Drops(x.r.Context(), x.console.Editor.Changes, v.Name, v.Version.Time); err != nil {
			return err
		}
	}
	return x.render("rollback", view{Title: "An earlier version of " + v.Name, Nav: "/lists", Data: v})
}

// rollback puts an earlier version of a managed list back.
func (x *exchange) rollback() error {
	l, why, err := x.withReason()
	if err != nil {
		return err
	}
	version, err := x.findVersion(l.Name, x.form("version"))
	if err != nil {
		return err
	}
	if len(version.Files) != 1 {
		return conflict("This version has %d files, and the list has one.", len(version.Files))
	}
	var result managed.Result
	err = store.ExtractVersion(x.console.Config().State.Dir, l.Name, version.ID, func(_ string, content io.Reader) error {
		var err error
		result, err = x.console.Editor.Replace(x.r.Context(), by(x.who), l.Name, managed.Replacement{
			Command: "rollback", What: "put version " + version.ID + " back", Content: content,
		}, managed.Options{Why: why})
		return err
	})
	if err != nil {
		return err
	}
	x.console.Logger.Info("console change", "command", "rollback", "user", x.who.Name, "client", x.clientAddress(), "list", l.Name, "what", "put version "+version.ID+" back", "why", why)
	if result.NotLive != "" {
		return failure{http.StatusAccepted, fmt.Sprintf("The version is back, but does not serve: %s.", result.NotLive)}
	}
	return x.redirect("/lists/" + url.PathEscape(l.Name))
}
