package admin

import (
	"context"
	"net/http"
	"os"

	"spamgate/internal/accounts"
)

// pathAccounts is the path of the request to change the accounts of the console.
const pathAccounts = "/v1/accounts"

// maxAccountsBody bounds such a request, in bytes: an account may have a thousand domains.
const maxAccountsBody = 1 << 20

// changeAccounts makes a change for root or the gate's own user, who could change the file, too.
// The others who may control the gate may not make themselves accounts.
func (s *Server) changeAccounts(r *http.Request, c accounts.Change) (accounts.Changed, error) {
	peer := peerFrom(r)
	if !peer.Known || peer.UID != 0 && peer.UID != os.Geteuid() {
		return accounts.Changed{}, ErrOwner
	}
	s.log.Info("change of accounts asked for", "what", c.Do, "user", c.Name, "by", peer)
	return s.options.Accounts.Change(c)
}

// ChangeAccounts makes the gate change the accounts of the console.
func (c *Client) ChangeAccounts(ctx context.Context, change accounts.Change) (done accounts.Changed, err error) {
	return done, c.call(ctx, http.MethodPost, pathAccounts, change, &done)
}
