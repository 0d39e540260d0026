package why

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"spamgate/internal/cli"
	"spamgate/internal/config"
	"spamgate/internal/decisions"
	"spamgate/internal/mailwhy"
)

// kept is what the history of decisions has.
type kept struct {
	asked bool
	err   error      // why it could not be asked, or only in part
	reach *time.Time // nil: it is empty
	found int        // decisions
	more  bool       // there are older messages

	complete bool // the log has nothing else about what was asked
}

// mostCompleted bounds the messages of which the other decisions are fetched.
const mostCompleted = 100

// askHistory adds to a search what the history of decisions has.
func askHistory(ctx context.Context, c *config.Config, file string, q mailwhy.Query, s *mailwhy.Search) (k kept) {
	find, end, err := openHistory(c, file)
	if find == nil {
		return kept{err: err}
	}
	defer end()
	k.asked = true
	page, err := find(ctx, wanted{id: q.ID, address: addressOf(q), since: q.Since, most: min(10*q.Most, 10000)})
	k.reach, k.found, k.err = page.Reach, len(page.Decisions), err
	k.more = q.ID == "" && page.Next != ""
	var ids []string // the newest first
	for i := range page.Decisions {
		if id := page.Decisions[i].ID; !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for i := range slices.Backward(page.Decisions) {
		s.Add(&page.Decisions[i])
	}
	if q.ID != "" {
		k.complete = k.found > 0
		return k
	}
	if len(ids) > q.Most {
		k.more, ids = true, ids[:q.Most]
	}
	for _, id := range ids[:min(mostCompleted, len(ids))] {
		rest, err := find(ctx, wanted{id: id, since: q.Since, most: 100})
		if err != nil {
			k.err = err
			break
		}
		for i := range rest.Decisions {
			s.Add(&rest.Decisions[i])
		}
	}
	reaches := k.reach != nil && !q.Since.IsZero() && !q.Since.Before(*k.reach)
	k.complete = err == nil && c.Decisions.Record == config.RecordAll && (reaches || k.more)
	return k
}

// addressOf returns the address that is asked for, "" if an id is.
func addressOf(q mailwhy.Query) string {
	if q.Null {
		return "<>"
	}
	return q.Text
}

// wanted is a search for an id or an address.
type wanted struct {
	id, address string
	since       time.Time
	most        int
}

// find finds decisions.
type find func(context.Context, wanted) (decisions.Page, error)

// openHistory returns a function that finds decisions, or nil if there is no history.
func openHistory(c *config.Config, file string) (f find, end func(), err error) {
	h, err := cli.AskHistory(c)
	if errors.Is(err, cli.ErrNoHistory) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if h == nil {
		if child, err := cli.CommandAsOwner(c.State.Dir); child != nil || err != nil {
			return asOwner(c, file), func() {}, err
		}
		if h, err = cli.ReadHistory(c); err != nil {
			return nil, nil, err
		}
	}
	return func(ctx context.Context, w wanted) (page decisions.Page, err error) {
		q := decisions.Query{ID: w.id, Since: w.since, Limit: w.most}
		if w.address != "" {
			if q.Address, err = cli.ShownAddress(c, w.address); err != nil {
				return page, err
			}
		}
		return h.Find(ctx, q)
	}, h.Close, nil
}

// asOwner returns a function that finds decisions in the files, as their owner. Only that runs as
// the owner: he may not be allowed to read the log.
func asOwner(c *config.Config, file string) find {
	return func(ctx context.Context, w wanted) (page decisions.Page, err error) {
		args := []string{"decisions", "find", "--json", "--config", file, "--last", strconv.Itoa(w.most)}
		if w.id != "" {
			args = append(args, "--id", w.id)
		}
		if w.address != "" {
			args = append(args, "--address", w.address)
		}
		if !w.since.IsZero() {
			args = append(args, "--since", time.Since(w.since).Round(time.Second).String())
		}
		cmd, err := cli.CommandAsOwner(c.State.Dir, args...)
		if cmd == nil || err != nil {
			return page, errors.Join(err, errors.New("the state directory has another owner now"))
		}
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		stop := context.AfterFunc(ctx, func() {
			if cmd.Process != nil {
				_ = cmd.Process.Kill()
			}
		})
		err = cmd.Run()
		stop()
		switch exit := (*exec.ExitError)(nil); {
		case ctx.Err() != nil:
			return page, context.Cause(ctx)
		case errors.As(err, &exit) && exit.ExitCode() == cli.ExitListed, err == nil:
			return page, json.Unmarshal(out.Bytes(), &page)
		case errs.Len() > 0:
			return page, errors.New(strings.TrimPrefix(strings.TrimSpace(errs.String()), "spamgate: "))
		}
		return page, fmt.Errorf("decisions find, as the owner of %s: %w", c.State.Dir, err)
	}
}

// where says how far back the history reaches.
func (k kept) where() string {
	switch {
	case !k.asked:
		return ""
	case k.reach == nil:
		return "the history of decisions, which is empty"
	}
	return "the history of decisions, which reaches back to " + k.reach.Local().Format(clock)
}
