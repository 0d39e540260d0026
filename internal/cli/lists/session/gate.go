package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"spamgate/blocklist/store"
	"spamgate/internal/admin"
	"spamgate/internal/config"
	"spamgate/internal/listedit"
	"spamgate/internal/setup"
	"spamgate/internal/term"
)

// accept tells the gate that the new content is wanted, even if it is much smaller or
// larger than the old. If that fails, a warning says that the gate may hold the change.
//
// Content that is already held was not asked for, so a change to it is not accepted in
// advance. Changing a file that was emptied is an error: it would no longer look emptied.
func (e *Edit) accept(ctx context.Context, change listedit.Change) error {
	if e.neverRead() {
		return nil
	}
	if why := e.held(ctx); why != "" {
		return e.changeHeld(why)
	}
	sum, err := setup.Opener(e.List.List).ContentSumWith(e.List.Paths, e.File, change.SHA256)
	if err != nil {
		e.mayBeHeld(err)
		return nil
	}
	e.AcceptSum(ctx, sum)
	return nil
}

// neverRead reports whether no gate has ever read the list, so that none will compare.
func (e *Edit) neverRead() bool {
	_, err := os.Stat(e.Config.State.Dir)
	return e.Gate().Client == nil && errors.Is(err, fs.ErrNotExist)
}

// AcceptSum tells the gate that a content is wanted.
func (e *Edit) AcceptSum(ctx context.Context, sum string) {
	if e.neverRead() {
		return
	}
	var err error
	if e.Gate().Client != nil {
		_, err = admin.Call(ctx, e.Gate().Client, admin.OpAccept, admin.AcceptRequest{SHA256: sum, Why: e.Why}, e.List.Name)
		if errors.Is(err, admin.ErrNoList) {
			return // it has never read the list, as rescan says
		}
	} else {
		err = acceptContent(e.Config, e.List.Name, sum)
	}
	if err != nil {
		e.mayBeHeld(err)
	}
}

func (e *Edit) mayBeHeld(err error) {
	fmt.Fprintf(e.Stderr, "spamgate: a gate may hold this change for looking wrong: %v\n", err)
}

// held returns why the content on disk is held, or "" if it is not held or that is not
// known.
func (e *Edit) held(ctx context.Context) string {
	if e.Gate().Client != nil {
		r, err := admin.Call(ctx, e.Gate().Client, admin.OpRescan, admin.None{})
		if err != nil {
			return ""
		}
		for _, l := range r.Failed {
			if l.List == e.List.Name && l.Held && !l.Pinned {
				return l.Error
			}
		}
		return ""
	}
	if e.current || e.known() {
		return "" // no need to read the list
	}
	_, stats, _ := e.Read(e.List.List) // an error is of the list, and in stats
	if len(stats) > 0 && stats[0].Held && stats[0].Err != nil && !errors.Is(stats[0].Err, store.ErrPinned) {
		return stats[0].Err.Error()
	}
	return ""
}

// known reports whether the content on disk went live, and nothing since, or was accepted,
// as every change by a command is.
func (e *Edit) known() bool {
	if e.sum == nil {
		return false
	}
	sum, err := e.sum()
	if err != nil {
		return false
	}
	if versions, err := KeptVersions(e.Config, e.List.Name); err == nil && len(versions) > 0 && versions[0].Sum == sum {
		return true
	}
	if info, err := os.Stat(e.File); err != nil || info.Size() == 0 {
		return false // as changeHeld says
	}
	lists, err := setup.BlocklistConfig(e.Config, nil)
	if err != nil {
		return false
	}
	accepted, err := store.IsAccepted(lists, e.List.Name, sum)
	return err == nil && accepted
}

// changeHeld warns about a change to a list that is held, or refuses it.
func (e *Edit) changeHeld(why string) error {
	if info, err := os.Stat(e.File); err == nil && info.Size() == 0 {
		return fmt.Errorf("it is empty, and the list had entries before: spamgate lists rollback %s puts them back; for an empty list write a comment into it", e.List.Name)
	}
	if e.Gate().Client == nil { // else the answer of the gate says it
		fmt.Fprintf(term.Escape(e.Stderr), "spamgate: list %s is held, and with this change it is judged anew: %s\n", e.List.Name, why)
	}
	return nil
}

// acceptContent records an accepted content for the next start, if no gate is running.
func acceptContent(c *config.Config, list, sum string) error {
	lists, err := setup.BlocklistConfig(c, nil)
	if err != nil {
		return err
	}
	return store.AcceptContent(lists, list, sum)
}
