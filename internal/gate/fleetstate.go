package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
			return f.obeyPin(ctx, list, pin)
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
		_, err = f.store.Pin(ctx, list, *pin)
	}
	return err
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
