package gate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/store"
	"spamgate/internal/accounts"
	"spamgate/internal/config"
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

// fleetPins shares pins and accepted contents.
type fleetPins struct {
	*fleetPart
	mu       sync.Mutex
	unobeyed map[string]string // why pins of lists are not obeyed
}

// isLocked reports whether an error of Tree.TryLock says that another process has the lock.
func isLocked(err error) bool { return errors.Is(err, syscall.EWOULDBLOCK) }

// sharing returns the member if the pins of a list are those of the fleet; nil if they are this
// gate's own.
func (f *fleetPins) sharing(ctx context.Context, list string) (*fleet.Member, error) {
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
func (f *fleetPins) share(ctx context.Context, what, list string, value any) error {
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

// changed is called after the pin of a list has changed here. If the fleet does not take that, it
// is as before again.
func (f *fleetPins) changed(ctx context.Context, list string, before, pin *blocklist.Pin) error {
	err := f.share(ctx, statePin, list, pin)
	if err == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	return errors.Join(err, f.obey(ctx, list, before))
}

// stateTime bounds how long a shared value may take to be used.
const stateTime = time.Minute

// stateChanged returns what uses the values that other gates have changed.
func (f *fleetPins) stateChanged(ctx context.Context, look func()) func(key string, value json.RawMessage) error {
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
			return f.note(list, f.obey(ctx, list, pin))
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

// obey pins a list as it is to be; nil: it is not pinned.
func (f *fleetPins) obey(ctx context.Context, list string, pin *blocklist.Pin) error {
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
			err = f.keep(ctx, list, pin)
		}
		if err == nil {
			_, err = f.store.Pin(ctx, list, *pin)
		}
	}
	return err
}

// keep fetches the version at which a list is to be pinned from the fleet, if this gate
// never had it, or not any more.
func (f *fleetPins) keep(ctx context.Context, list string, pin *blocklist.Pin) error {
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

// obeyAll pins the lists as the fleet has them pinned: a list may be shared only now.
func (f *fleetPins) obeyAll(ctx context.Context, m *fleet.Member) {
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

// note notes, for the status, whether the pin of a list is obeyed.
func (f *fleetPins) note(list string, err error) error {
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

// problems returns which pins are not obeyed, in words. Those of lists that are shared no more
// are no problems.
func (f *fleetPins) problems() (problems []string) {
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
func (f *fleetPins) accept(ctx context.Context, list, sum string) error {
	l, err := report.FindStats(f.store.Set(), list)
	switch {
	case err != nil:
		return err
	case sum == l.HeldSum:
		return f.store.Accept(ctx, list)
	}
	return f.store.AcceptContent(list, sum)
}

// This file shares the accounts of the console, and the end of sessions.

// stateEnded is what a shared value is about by which the sessions of a user end: see
// fleet.StateKey. A gate that learns a new version of the value ends those that it has then, so
// that no clock matters.
const stateEnded = "ended"

// shares returns what the gate shares. The file with the accounts is made if there is none.
func (f *fleetPart) shares(c *config.Config) []fleet.List {
	lists := setup.FleetLists(c)
	if !setup.SharesAccounts(c) {
		return lists
	}
	if err := f.accounts.Prepare(); err != nil {
		f.log.Error("the accounts are not shared", "error", err)
		return lists
	}
	return append(lists, fleet.List{
		Name: fleet.AccountsList, Kind: fleet.Accounts, Path: accounts.Path(setup.ConsoleDir(c)), MaxBytes: accounts.MaxShared,
	})
}

// accountsFleet implements accounts.Fleet.
type accountsFleet struct{ *fleetPart }

// Shared implements accounts.Fleet. A gate that has left the fleet has its own accounts.
func (f accountsFleet) Shared() bool { return setup.SharesAccounts(f.config()) && !f.hasLeft() }

// Retry implements accounts.Fleet.
func (f accountsFleet) Retry(ctx context.Context, edit func() error) error {
	err := f.fleetPart.Retry(ctx, fleet.AccountsList, edit)
	if fleet.Refused(err) {
		return &accounts.RefusedError{Err: err}
	}
	return err
}

// Publish implements accounts.Fleet.
func (f accountsFleet) Publish(ctx context.Context, what string, old *os.File, text []byte) (done func(placed bool), err error) {
	return f.fleetPart.Publish(ctx, fleet.AccountsEdit(what, old, text))
}

// EndSessions implements accounts.Fleet.
func (f accountsFleet) EndSessions(ctx context.Context, user string) error {
	m, err := f.wait(ctx)
	if err != nil {
		return err
	}
	value, err := json.Marshal(endedSessions{user})
	if err != nil {
		return err
	}
	return m.SetState(ctx, endedKey(user), func(json.RawMessage) (json.RawMessage, error) { return value, nil })
}

// endedSessions is the value about stateEnded.
type endedSessions struct {
	User string `json:"user"`
}

// endedKey returns the key of the value about a user. A name that is too long for it is hashed.
func endedKey(user string) string {
	key := fleet.StateKey(stateEnded, user)
	if _, _, ok := fleet.ParseStateKey(key); !ok {
		sum := sha256.Sum256([]byte(user))
		key = fleet.StateKey(stateEnded, hex.EncodeToString(sum[:]))
	}
	return key
}

// endSessions ends the sessions of a user that the gate has, since another gate has ended its own.
func (f *fleetPart) endSessions(value json.RawMessage) error {
	var e endedSessions
	if err := json.Unmarshal(value, &e); err != nil {
		return err
	}
	if name, err := accounts.ParseName(e.User); err != nil || name != e.User || !setup.SharesAccounts(f.config()) {
		return fleet.ErrNotShared
	}
	n, err := f.accounts.EndHere(e.User)
	if err == nil && n > 0 {
		f.log.Info("sessions ended, as on another gate", "user", e.User, "sessions", n)
	}
	return err
}
