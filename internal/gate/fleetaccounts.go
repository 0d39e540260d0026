package gate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"

	"spamgate/internal/accounts"
	"spamgate/internal/config"
	"spamgate/internal/fleet"
	"spamgate/internal/setup"
)

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
