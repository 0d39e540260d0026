package gate

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/store"
	"spamgate/internal/fleet"
	"spamgate/internal/report"
	"spamgate/internal/setup"
)

// This file shares pins and accepted contents of shared lists.

// What shared values are about: see fleet.StateKey.
const (
	statePin    = "pin"    // a blocklist.Pin, or null
	stateAccept = "accept" // a sharedAccept
)

// sharedAccept is a content of a list that an admin has accepted.
type sharedAccept struct {
	SHA256 string `json:"sha256"` // see blocklist.ListStats.Sum
}

// isLocked reports whether an error of Tree.TryLock says that another process has the lock.
func isLocked(err error) bool { return errors.Is(err, syscall.EWOULDBLOCK) }

// sharing returns the member if the pins of a list are those of the fleet; nil if they are this
// gate's own.
func (f *fleetPart) sharing(ctx context.Context, list string) (*fleet.Member, error) {
	c := f.config()
	i := setup.ListIndex(c, list)
	if i < 0 || !c.Lists[i].Fleet {
		return nil, nil
	}
	m, err := f.wait(ctx)
	if errors.Is(err, errLeft) {
		return nil, nil
	}
	return m, err
}

// share makes a value that of all gates, if the list is shared.
func (f *fleetPart) share(ctx context.Context, what, list string, value any) error {
	m, err := f.sharing(ctx, list)
	if err == nil && m != nil {
		var text []byte
		if text, err = json.Marshal(value); err == nil {
			err = m.SetState(ctx, fleet.StateKey(what, list), func(json.RawMessage) (json.RawMessage, error) { return text, nil })
		}
	}
	if err != nil {
		return fmt.Errorf("list %s: nothing has changed, since it would not on the other gates: %w; spamgate fleet leave makes this gate decide alone", list, err)
	}
	return nil
}

// pinned is called after the pin of a list has changed here. If the fleet does not take that, it
// is as before again.
func (f *fleetPart) pinned(ctx context.Context, list string, before, now *blocklist.Pin) error {
	err := f.share(ctx, statePin, list, now)
	if err == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	return errors.Join(err, f.obeyPin(ctx, list, before))
}

// stateTime bounds how long a shared value may take to be used.
const stateTime = time.Minute

// stateChanged returns what uses the values that other gates have changed.
func (f *fleetPart) stateChanged(ctx context.Context, look func()) func(key string, value json.RawMessage) error {
	return func(key string, value json.RawMessage) error {
		what, list, _ := fleet.ParseStateKey(key)
		switch what {
		case stateEnded:
			return f.endSessions(value)
		case stateGate:
			return nil // see roster
		}
		c := f.config()
		if i := setup.ListIndex(c, list); i < 0 || !c.Lists[i].Fleet {
			return fleet.ErrNotShared
		}
		ctx, cancel := context.WithTimeout(ctx, stateTime)
		defer cancel()
		switch what {
		case statePin:
			var pin *blocklist.Pin
			if err := json.Unmarshal(value, &pin); err != nil {
				return err
			}
			return f.notePin(list, f.obeyPin(ctx, list, pin))
		case stateAccept:
			var a sharedAccept
			if err := json.Unmarshal(value, &a); err != nil {
				return err
			}
			defer look()
			return f.accept(ctx, list, a.SHA256)
		}
		return fleet.ErrNotShared // a later version shares more
	}
}

// obeyPin pins a list as it is to be; nil: it is not pinned.
func (f *fleetPart) obeyPin(ctx context.Context, list string, pin *blocklist.Pin) error {
	l, err := report.FindStats(f.store.Set(), list)
	if err != nil {
		return err
	}
	switch {
	case pin == nil:
		if err = f.store.Unpin(ctx, list); errors.Is(err, store.ErrNotPinned) {
			err = nil
		}
	case pin.Sum == "":
		err = errors.New("the pin names no version")
	case l.Pinned == nil || l.Pinned.Sum != pin.Sum:
		if l.Sum != pin.Sum {
			err = f.keepPinned(ctx, list, pin)
		}
		if err == nil {
			_, err = f.store.Pin(ctx, list, *pin)
		}
	}
	return err
}

// keepPinned fetches the version at which a list is to be pinned from the fleet, if this gate
// never had it, or not any more.
func (f *fleetPart) keepPinned(ctx context.Context, list string, pin *blocklist.Pin) error {
	c := f.config()
	l := c.Lists[setup.ListIndex(c, list)]
	stateDir, file := c.State.Dir, l.Copy
	opener := setup.Opener(l)
	if onDisk, err := opener.ContentSum([]string{file}); err == nil && onDisk == pin.Sum {
		return nil
	}
	versions, err := store.Versions(stateDir, list)
	if err != nil || slices.ContainsFunc(versions, func(v store.VersionInfo) bool { return v.Sum == pin.Sum }) {
		return err
	}
	m, err := f.wait(ctx)
	if err != nil {
		return err
	}
	content, err := m.Earlier(ctx, list, func(sum [sha256.Size]byte) bool {
		named, err := opener.ContentSumWith([]string{file}, file, sum)
		return err == nil && named == pin.Sum
	})
	if err != nil {
		return fmt.Errorf("the version of the pin cannot be had from the fleet: %w", err)
	}
	if content == nil {
		return errors.New("this gate does not have the version of the pin, nor does the fleet any more: unpin the list, and pin it again")
	}
	defer content.Discard()
	return store.KeepVersion(ctx, stateDir, list, store.Kept{Path: file, Entries: pin.Entries, Content: content})
}

// obeyPins pins the lists as the fleet has them pinned: a list may be shared only now.
func (f *fleetPart) obeyPins(ctx context.Context, m *fleet.Member) {
	pins := m.States(statePin)
	use := f.stateChanged(ctx, func() {})
	for _, l := range f.config().Lists {
		value, ok := pins[l.Name]
		if !ok || !l.Fleet {
			continue
		}
		if err := use(fleet.StateKey(statePin, l.Name), value); err != nil {
			f.log.Warn("the fleet's pin of a list is not obeyed", "list", l.Name, "error", err)
		}
	}
}

// notePin notes, for the status, whether the pin of a list is obeyed.
func (f *fleetPart) notePin(list string, err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.unobeyed, list)
	if err != nil {
		if f.unobeyed == nil {
			f.unobeyed = map[string]string{}
		}
		f.unobeyed[list] = err.Error()
	}
	return err
}

// pinProblems returns which pins are not obeyed, in words. Those of lists that are shared no more
// are no problems.
func (f *fleetPart) pinProblems() (problems []string) {
	c := f.config()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, list := range slices.Sorted(maps.Keys(f.unobeyed)) {
		if i := setup.ListIndex(c, list); i < 0 || !c.Lists[i].Fleet {
			continue
		}
		problems = append(problems, fmt.Sprintf("list %s is pinned in the fleet, but not here: %s", list, f.unobeyed[list]))
	}
	return problems
}

// accept accepts a content of a list, which may be held here, or come later.
func (f *fleetPart) accept(ctx context.Context, list, sum string) error {
	l, err := report.FindStats(f.store.Set(), list)
	switch {
	case err != nil:
		return err
	case sum == l.HeldSum:
		return f.store.Accept(ctx, list)
	}
	return f.store.AcceptContent(list, sum)
}
