package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"spamgate/blocklist/sender"
	"spamgate/internal/admin"
	"spamgate/internal/config"
	"spamgate/internal/decisions"
	"spamgate/internal/fleetsearch"
	"spamgate/internal/logging"
	"spamgate/internal/setup"
)

// History is the history of decisions, for a command.
type History struct {
	admin.History

	// Fleet asks all gates of the fleet, or one of them; nil: no gate runs here.
	Fleet func(ctx context.Context, q decisions.Query, only string) (fleetsearch.Page, error)

	Close func()
}

// OpenHistory opens the history of decisions: that of the running gate, or without one its files.
// If these belong to another user, and this process is root, the command line runs again as that
// user, see [AsOwner]: ran is true, and the command ends with the error.
func OpenHistory(cmd *cobra.Command, c *config.Config) (h *History, ran bool, err error) {
	if c.Decisions.Keep == 0 {
		return nil, false, errors.New(`the history of decisions is off: [decisions] keep is "0"; set keep = "7d" and reload the gate, and it keeps them from then on`)
	}
	if c.Admin.Socket != "" {
		gate := DialGate(c)
		if gate.Client != nil {
			return &History{gate.Client, gate.Client.FleetDecisions, gate.Close}, false, nil
		}
		if gate.Err != nil {
			return nil, false, gate.Err
		}
	}
	if ran, err := AsOwner(cmd, c.State.Dir); ran || err != nil {
		return nil, ran, err
	}
	// The state directory now belongs to nobody whom this process does not trust.
	dir := setup.DecisionsDir(c)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrPermission) {
		return nil, false, fmt.Errorf("%w; run this as root or as the gate's user", err)
	}
	r := decisions.NewReader(dir)
	return &History{History: r, Close: r.Close}, false, nil
}

// ShownAddress returns an address as the history shows it.
func ShownAddress(c *config.Config, text string) (string, error) {
	if text == "<>" {
		return text, nil
	}
	text = strings.TrimSuffix(strings.TrimPrefix(text, "<"), ">")
	if _, err := sender.Parse(text); err != nil || !strings.Contains(text, "@") {
		return "", fmt.Errorf("%q: not an address; --domain finds a domain", text)
	}
	switch c.Log.Addresses {
	case logging.AddressesHash:
		hash, err := setup.FindHashed(c)
		if err != nil {
			return "", fmt.Errorf("%s: the history has hashes of addresses, and their key cannot be read: %w; run this as the gate's user or root", text, err)
		}
		if hash == nil {
			return "", fmt.Errorf("%s: the history has hashes of addresses, and the state directory has no key for them yet", text)
		}
		return hash(text), nil
	case logging.AddressesDomain:
		return "*" + text[strings.LastIndexByte(text, '@'):], nil
	}
	return text, nil
}

// IsTooOld reports whether an error says that the running gate is too old for a request.
func IsTooOld(err error) bool {
	var refused *admin.Error
	return errors.As(err, &refused) && refused.Code == "no_path"
}

// HistoryError returns an error of a History with what to do if the running gate is too old to have
// one.
func HistoryError(err error) error {
	if IsTooOld(err) {
		return errors.New("the running gate is an older version, which has no history of decisions: spamgate handover replaces it")
	}
	return err
}
