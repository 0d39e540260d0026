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

	"spamgate/internal/admin"
	"spamgate/internal/cli"
	"spamgate/internal/cli/local"
	"spamgate/internal/config"
	"spamgate/internal/decisions"
	"spamgate/internal/fleetsearch"
	"spamgate/internal/mailwhy"
)

// kept is what the history of decisions has.
type kept struct {
	asked bool
	err   error      // why it could not be asked, or only in part
	reach *time.Time // nil: it is empty
	found int        // decisions
	more  bool       // there are older messages

	fleet *fleetsearch.Page // who has answered; nil: the fleet was not asked

	complete bool // the log has nothing else about what was asked
}

// mostCompleted bounds the messages of which the other decisions are fetched.
const mostCompleted = 100

// message is a message and the gate that had it.
type message struct{ id, gate string }

// askHistory adds to a search what the history of decisions has. In a fleet it asks all gates, but
// for an id that this one knows.
func askHistory(ctx context.Context, c *config.Config, o options, q mailwhy.Query, s *mailwhy.Search) (k kept) {
	h, err := openHistory(c, o.file)
	if h == nil {
		return kept{err: err}
	}
	defer h.end()
	k.asked = true
	w := wanted{id: q.ID, address: addressOf(q), since: q.Since, most: min(10*q.Most, 10000)}
	page, err := h.find(ctx, w)
	k.reach, k.err = page.Reach, err
	if h.inFleet && !o.here && (q.ID == "" || len(page.Decisions) == 0) {
		all, err := h.findAll(ctx, w)
		switch {
		case err == nil:
			page, k.fleet = all, &all
			if len(all.Decisions) == 0 && !all.Whole() {
				k.err = errors.New(all.Answered())
			}
		case !errors.Is(err, admin.ErrNoFleet) && !local.IsTooOld(err):
			k.err = err
		}
	}
	k.found = len(page.Decisions)
	k.more = q.ID == "" && page.Next != ""
	var messages []message // the newest first
	for i := range page.Decisions {
		if m := (message{page.Decisions[i].ID, page.Decisions[i].Gate}); !slices.Contains(messages, m) {
			messages = append(messages, m)
		}
	}
	for _, d := range slices.Backward(page.Decisions) {
		s.Add(&d.Decision, d.Gate)
	}
	if q.ID != "" {
		k.complete = k.found > 0
		return k
	}
	if len(messages) > q.Most {
		k.more, messages = true, messages[:q.Most]
	}
	if err := h.complete(ctx, messages[:min(mostCompleted, len(messages))], q.Since, s); err != nil {
		k.err = err
	}
	reaches := k.reach != nil && !q.Since.IsZero() && !q.Since.Before(*k.reach)
	k.complete = err == nil && c.Decisions.Record == config.RecordAll && (reaches || k.more)
	return k
}

// complete adds the other decisions about messages to a search.
func (h *histories) complete(ctx context.Context, messages []message, since time.Time, s *mailwhy.Search) error {
	for _, m := range messages {
		w := wanted{id: m.id, gate: m.gate, since: since, most: 100}
		find := h.find
		if m.gate != "" && m.gate != h.name {
			find = h.findAll
		}
		rest, err := find(ctx, w)
		if err == nil && !rest.Whole() {
			err = errors.New(rest.Answered())
		}
		if err != nil {
			return err
		}
		for i := range rest.Decisions {
			s.Add(&rest.Decisions[i].Decision, m.gate)
		}
	}
	return nil
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
	gate        string // the only one of the fleet; "": all
	since       time.Time
	most        int
}

// find finds decisions.
type find func(context.Context, wanted) (fleetsearch.Page, error)

// histories are the history of this gate, and those of its fleet.
type histories struct {
	name    string // of this gate
	find    find
	findAll find
	inFleet bool
	end     func()
}

// openHistory opens the history. It returns nil if there is none.
func openHistory(c *config.Config, file string) (*histories, error) {
	h, err := local.AskHistory(c)
	if errors.Is(err, local.ErrNoHistory) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if h == nil {
		if child, err := local.CommandAsOwner(c.State.Dir); child != nil || err != nil {
			return &histories{find: asOwner(c, file), end: func() {}}, err
		}
		if h, err = local.ReadHistory(c); err != nil {
			return nil, err
		}
	}
	all := &histories{name: c.Fleet.Name, inFleet: c.Fleet.On() && h.Fleet != nil, end: h.Close}
	all.find = func(ctx context.Context, w wanted) (fleetsearch.Page, error) {
		q, err := w.query(c)
		if err != nil {
			return fleetsearch.Page{}, err
		}
		page, err := h.Find(ctx, q)
		return fleetsearch.Alone(page), err
	}
	all.findAll = func(ctx context.Context, w wanted) (fleetsearch.Page, error) {
		q, err := w.query(c)
		if err != nil {
			return fleetsearch.Page{}, err
		}
		return h.Fleet(ctx, q, w.gate)
	}
	return all, nil
}

// query returns the query of a search.
func (w wanted) query(c *config.Config) (q decisions.Query, err error) {
	q = decisions.Query{ID: w.id, Since: w.since, Limit: w.most}
	if w.address != "" {
		q.Address, err = local.ShownAddress(c, w.address)
	}
	return q, err
}

// asOwner returns a function that finds decisions in the files, as their owner. Only that runs as
// the owner: he may not be allowed to read the log.
func asOwner(c *config.Config, file string) find {
	return func(ctx context.Context, w wanted) (page fleetsearch.Page, err error) {
		args := []string{"decisions", "find", "--json", "--here", "--config", file, "--last", strconv.Itoa(w.most)}
		if w.id != "" {
			args = append(args, "--id", w.id)
		}
		if w.address != "" {
			args = append(args, "--address", w.address)
		}
		if !w.since.IsZero() {
			args = append(args, "--since", time.Since(w.since).Round(time.Second).String())
		}
		cmd, err := local.CommandAsOwner(c.State.Dir, args...)
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
