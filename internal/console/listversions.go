package console

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/store"
	"spamgate/internal/accounts"
	"spamgate/internal/config"
	"spamgate/internal/listfiles"
	"spamgate/internal/managed"
	"spamgate/internal/report"
	"spamgate/internal/setup"
)

// versionsView is what the page of a list's versions shows.
type versionsView struct {
	listTab
	Versions  []store.VersionInfo
	Live      string // the sum of the version that serves
	PinnedSum string // that of the pinned one; "" for none
	History   int64  // [state] history
	Restore   bool   // the account may put a version back: the list is managed
	MayPin    bool
}

func (x *exchange) versions() error {
	tab, _, err := x.listTab("versions")
	if err != nil {
		return err
	}
	c := x.console.Config()
	v := versionsView{listTab: tab, History: c.State.History, MayPin: x.who.May(accounts.Pin)}
	v.Restore = v.Managed && x.who.May(accounts.Rollback)
	if v.Versions, err = store.Versions(c.State.Dir, v.Name); err != nil {
		return err
	}
	stats, err := report.FindStats(x.console.Set(), v.Name)
	if err != nil {
		return err
	}
	if v.Live = stats.Sum; v.Pinned != nil {
		v.PinnedSum = v.Pinned.SHA256
	}
	return x.render("versions", view{Title: "Versions of " + v.Name, Nav: "/lists", Data: v})
}

// findVersion returns a kept version of a list.
func (x *exchange) findVersion(list, id string) (store.VersionInfo, error) {
	all, err := store.Versions(x.console.Config().State.Dir, list)
	if err != nil {
		return store.VersionInfo{}, err
	}
	for _, v := range all {
		if v.ID == id {
			return v, nil
		}
	}
	return store.VersionInfo{}, failure{http.StatusNotFound, "There is no such version of the list " + list + " any more."}
}

// exportList sends the text of a list: what its files hold, unpacked, or a version.
func (x *exchange) exportList() error {
	l, err := x.withFiles()
	if err != nil {
		return err
	}
	out := &download{x: x, name: l.Name + extension(l)}
	if id := x.query("version"); id != "" {
		version, err := x.findVersion(l.Name, id)
		if err != nil {
			return err
		}
		out.name = l.Name + "-" + version.ID + extension(l)
		err = store.ExtractVersion(x.console.Config().State.Dir, l.Name, version.ID, func(path string, content io.Reader) error {
			return out.file(path, len(version.Files), content)
		})
		return out.end(err)
	}
	files, err := listfiles.New(*l)
	if err != nil {
		return invalid(sentence(err))
	}
	for _, path := range files.Paths {
		f, err := setup.Opener(*l).Open(path)
		if err != nil {
			return out.end(err)
		}
		content, _, err := listfile.Unpack(f, l.MaxBytes)
		if err == nil {
			err = out.file(path, len(files.Paths), listfiles.Stoppable(x.r.Context(), content))
			content.Close()
		}
		f.Close()
		if err != nil {
			return out.end(err)
		}
	}
	return out.end(nil)
}

// extension returns the extension of a file with the text of a list.
func extension(l *config.List) string {
	switch l.Format {
	case listfile.CSV:
		return ".csv"
	case listfile.JSON:
		return ".json"
	}
	return ".txt"
}

// download is an answer that a browser saves as a file. It may be long: the time to write it is
// bounded for each part.
type download struct {
	x     *exchange
	name  string
	begun bool
}

// partTime bounds how long the client may take for a part of a download.
const partTime = time.Minute

// Write implements io.Writer.
func (d *download) Write(p []byte) (int, error) {
	if !d.begun {
		d.begun = true
		h := d.x.w.Header()
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": d.name}))
	}
	_ = http.NewResponseController(d.x.w).SetWriteDeadline(time.Now().Add(partTime)) // tests have none
	return d.x.w.Write(p)
}

// file adds one of the files of a list.
func (d *download) file(path string, total int, content io.Reader) error {
	if total > 1 {
		if _, err := fmt.Fprintf(d, "# %s\n", visible(path)); err != nil {
			return err
		}
	}
	_, err := io.CopyBuffer(d, content, make([]byte, 64<<10))
	return err
}

// end ends the download. If it is not complete the connection is cut, so that the browser says
// so.
func (d *download) end(err error) error {
	switch {
	case err != nil && !d.begun:
		return err
	case err != nil:
		d.x.console.Logger.Warn("console download ended early", "path", d.x.r.URL.Path, "user", d.x.who.Name, "error", err)
		panic(http.ErrAbortHandler)
	case !d.begun:
		_, err = d.Write(nil)
	}
	return err
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
	result, err := x.console.Editor.Rollback(x.r.Context(), by(x.who), l.Name, version.ID, managed.Options{Why: why})
	if err != nil {
		return err
	}
	x.console.Logger.Info("console change", "command", "rollback", "user", x.who.Name, "client", x.clientAddress(), "list", l.Name, "what", "put version "+version.ID+" back", "why", why)
	if result.NotLive != "" {
		return failure{http.StatusAccepted, fmt.Sprintf("The version is back, but does not serve: %s.", result.NotLive)}
	}
	return x.redirect("/lists/" + url.PathEscape(l.Name))
}
