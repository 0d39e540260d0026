package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"spamgate/internal/managed"
)

// Add makes the gate add entries to a managed list: see [managed.Editor.Add].
func (c *Client) Add(ctx context.Context, list string, entries []managed.NewEntry, o managed.Options) (r managed.Result, err error) {
	return r, c.call(ctx, http.MethodPost, "/v1/lists/"+url.PathEscape(list)+"/entries", AddRequest{entries, o, sudoUser()}, &r)
}

// Remove makes the gate remove entries from a managed list.
func (c *Client) Remove(ctx context.Context, list string, entries []managed.Name, o managed.Options) (r managed.Result, err error) {
	return r, c.call(ctx, http.MethodPost, "/v1/lists/"+url.PathEscape(list)+"/entries/remove", RemoveRequest{entries, o, sudoUser()}, &r)
}

// Undo makes the gate undo a change of a managed list.
func (c *Client) Undo(ctx context.Context, change string, o managed.Options) (r managed.Result, err error) {
	return r, c.call(ctx, http.MethodPost, "/v1/undo", UndoRequest{change, o, sudoUser()}, &r)
}

// Versions returns the kept versions of a managed list, the newest first.
func (c *Client) Versions(ctx context.Context, list string) (versions []managed.Version, err error) {
	return versions, c.call(ctx, http.MethodGet, "/v1/lists/"+url.PathEscape(list)+"/versions", nil, &versions)
}

// Rollback makes the gate put a version of a managed list back.
func (c *Client) Rollback(ctx context.Context, list, version string, o managed.Options) (r managed.Result, err error) {
	return r, c.call(ctx, http.MethodPost, "/v1/lists/"+url.PathEscape(list)+"/rollback", RollbackRequest{version, o, sudoUser()}, &r)
}

// Content copies the text of a managed list to w.
func (c *Client) Content(ctx context.Context, list string, w io.Writer) error {
	response, err := c.send(ctx, http.MethodGet, "/v1/lists/"+url.PathEscape(list)+"/content", nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(w, response.Body); err != nil {
		return incomplete(err)
	}
	return nil
}

// Replace makes the gate replace the text of a managed list.
func (c *Client) Replace(ctx context.Context, list string, r managed.Replacement, o managed.Options) (result managed.Result, err error) {
	query := url.Values{"command": {r.Command}, "what": {r.What}, "base": {r.Base}, "why": {o.Why}, "sudo_user": {sudoUser()}, "dry_run": {strconv.FormatBool(o.DryRun)}}
	response, err := c.sendBody(ctx, http.MethodPost, "/v1/lists/"+url.PathEscape(list)+"/replace?"+query.Encode(), r.Content)
	if err != nil {
		return result, err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&result); err != nil {
		return result, fmt.Errorf("asking the gate at %s: invalid response: %w", c.path, err)
	}
	return result, nil
}

// Changes returns the changes that the gate's audit log records. Want has no effect.
func (c *Client) Changes(ctx context.Context, q managed.ChangesQuery) (page managed.ChangesPage, err error) {
	query := url.Values{"list": {q.List}, "entry": {q.Entry}, "by": {q.By}, "before": {q.Before}}
	if !q.Since.IsZero() {
		query.Set("since", q.Since.Format(time.RFC3339Nano))
	}
	if q.Limit > 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	return page, c.call(ctx, http.MethodGet, "/v1/changes?"+query.Encode(), nil, &page)
}
