package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/segment"
	"spamgate/blocklist/store"
	"spamgate/internal/accounts"
	"spamgate/internal/admin"
	"spamgate/internal/config"
	"spamgate/internal/listcompare"
	"spamgate/internal/listfiles"
	"spamgate/internal/report"
	"spamgate/internal/setup"
)

// heldView is what the page of a held update shows.
type heldView struct {
	listTab

	Work *work
	Diff *listcompare.Diff // nil: not known yet
	Why  string            // why it is not known

	Went, Came, Changed []listcompare.Difference // some of them

	Sum       string // of the content on disk
	MayAccept bool
	MayPin    bool

	Size  int64  // of the files
	state string // how they look
}

// maxShownDifferences bounds the differences of each kind that a page shows.
const maxShownDifferences = 200

func (x *exchange) held() error {
	v, l, err := x.heldView()
	if err != nil {
		return err
	}
	if v.Error == "" {
		return x.render("held", view{Title: "Held update of " + v.Name, Nav: "/lists", Data: v})
	}
	v.Work = x.work(v.key(), v.Entries+int(v.Size/20), func(ctx context.Context) (any, error) { return x.console.compare(ctx, l) })
	if v.Diff, v.Why = resultOf[*listcompare.Diff](v.Work); v.Diff != nil {
		for _, d := range v.Diff.Differences {
			switch d.What {
			case "went":
				v.Went = append(v.Went, d)
			case "came":
				v.Came = append(v.Came, d)
			default:
				v.Changed = append(v.Changed, d)
			}
		}
	}
	return x.render("held", view{Title: "Held update of " + v.Name, Nav: "/lists", Data: v, Refresh: refreshWhile(v.Work)})
}

// refreshWhile returns how often a page is loaded again while a work runs.
func refreshWhile(w *work) time.Duration {
	if w.Runs() {
		return 2 * time.Second
	}
	return 0
}

// heldView returns the state of the list in the path, and its configuration.
func (x *exchange) heldView() (v heldView, l *config.List, err error) {
	if v.listTab, l, err = x.listTab("held"); err != nil {
		return v, l, err
	}
	stats, err := report.FindStats(x.console.Set(), v.Name)
	if err != nil {
		return v, l, err
	}
	v.Sum, v.MayAccept, v.MayPin = stats.HeldSum, x.who.May(accounts.AcceptHeld), x.who.May(accounts.Pin)
	if files, err := listfiles.New(*l); err == nil {
		for _, path := range files.Paths {
			if info, err := setup.Opener(*l).Stat(path); err == nil {
				v.Size += info.Size()
				v.state += fmt.Sprint(info.Size(), info.ModTime().UnixNano(), " ")
			}
		}
	}
	return v, l, nil
}

// key names the comparison: of what serves with what is on disk.
func (v *heldView) key() string {
	loaded := ""
	if v.Loaded != nil {
		loaded = v.Loaded.String()
	}
	return "held " + v.Name + " " + loaded + " " + v.state
}

func (x *exchange) startHeld() error {
	v, l, err := x.heldView()
	if err != nil {
		return err
	}
	if v.Error == "" {
		return conflict("Nothing is held of the list %s.", v.Name)
	}
	return x.startWork(v.key(), "/lists/"+url.PathEscape(v.Name)+"/held", func(ctx context.Context) (any, error) { return x.console.compare(ctx, l) })
}

// compare compares the version of a list that serves with its files.
func (c *Console) compare(ctx context.Context, list *config.List) (*listcompare.Diff, error) {
	l, err := listfiles.New(*list)
	if err != nil {
		return nil, err
	}
	index, key, _, ok := c.Set().Index(list.Name)
	if !ok {
		index, key = new(segment.Segment), listfiles.NewKey()
	}
	guarded := listfiles.NewProtection(c.Config())
	d := &listcompare.Diff{Old: "what serves", New: "on disk", Most: maxShownDifferences}
	on, err := listfiles.Segment(listfiles.NewScan(ctx, []*listfiles.List{l}, io.Discard), l, key, func(e listfile.Entry) bool {
		return guarded.LeftOut(l, e).Omitted()
	})
	if err != nil {
		return nil, err
	}
	return d, d.Compare(index, on, key)
}

// logHeld logs what the account did to a list with a held update or a pin.
func (x *exchange) logHeld(command, list, what, why string) {
	x.console.Logger.Info("console change", "command", command, "user", x.who.Name, "client", x.clientAddress(), "list", list, "what", what, "why", why)
}

// withReason returns the list in the path, and the reason in a form.
func (x *exchange) withReason() (l *config.List, why string, err error) {
	if l, err = x.withFiles(); err == nil {
		why, err = x.reason()
	}
	return l, why, err
}

// reason returns the reason in a form, which must be given.
func (x *exchange) reason() (string, error) {
	why := x.form("why")
	if why == "" {
		return "", invalid("Say why: the reason stands in the audit log.")
	}
	return why, checkReason(why)
}

func (x *exchange) acceptHeld() error {
	v, l, err := x.heldView()
	if err != nil {
		return err
	}
	why, err := x.reason()
	if err != nil {
		return err
	}
	if x.form("sum") != v.Sum {
		return conflict("The update of the list %s is no longer the one that you have seen. Go back and look at it again.", l.Name)
	}
	if _, err := x.accept(l, why); err != nil {
		return err
	}
	return x.redirect("/lists/" + url.PathEscape(l.Name))
}

// accept accepts what is held of a list.
func (x *exchange) accept(l *config.List, why string) (admin.Accepted, error) {
	if err := checkReason(why); err != nil {
		return admin.Accepted{}, err
	}
	done, err := x.console.Gate.Accept(x.r.Context(), by(x.who), l.Name, admin.AcceptRequest{Why: why})
	if err != nil {
		return done, heldFailure(err)
	}
	x.logHeld("accept", l.Name, done.What(), why)
	return done, nil
}

// heldFailure returns what the user sees of an error of the gate about a held or pinned list.
func heldFailure(err error) error {
	if errors.Is(err, admin.ErrNothingHeld) || errors.Is(err, admin.ErrNotPinned) || errors.Is(err, store.ErrNotPinned) || errors.Is(err, store.ErrNothing) {
		return conflict("%s", sentence(err))
	}
	return err
}

func (x *exchange) pin() error {
	l, why, err := x.withReason()
	if err != nil {
		return err
	}
	request := admin.PinRequest{Why: why}
	if id := x.form("version"); id != "" {
		version, err := x.findVersion(l.Name, id)
		if err != nil {
			return err
		}
		request.SHA256, request.Entries = version.Sum, version.Entries
	}
	if _, err := x.pinList(l, request); err != nil {
		return err
	}
	return x.redirect("/lists/" + url.PathEscape(l.Name))
}

// pinList pins a list.
func (x *exchange) pinList(l *config.List, request admin.PinRequest) (admin.PinResult, error) {
	if err := checkReason(request.Why); err != nil {
		return admin.PinResult{}, err
	}
	done, err := x.console.Gate.Pin(x.r.Context(), by(x.who), l.Name, request)
	if err != nil {
		return done, heldFailure(err)
	}
	x.logHeld("pin", l.Name, done.Pinned.What(), request.Why)
	return done, nil
}

func (x *exchange) unpin() error {
	l, why, err := x.withReason()
	if err != nil {
		return err
	}
	done, err := x.console.Gate.Unpin(x.r.Context(), by(x.who), l.Name, admin.UnpinRequest{Why: why})
	if err != nil {
		return heldFailure(err)
	}
	x.logHeld("unpin", l.Name, done.Pinned.What(), why)
	return x.redirect("/lists/" + url.PathEscape(l.Name))
}
