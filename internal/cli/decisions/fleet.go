package decisions

import (
	"context"
	"errors"

	"spamgate/internal/admin"
	"spamgate/internal/cli/local"
	history "spamgate/internal/decisions"
	"spamgate/internal/fleetsearch"
)

// find returns the newest decisions that match, at most so many: of all gates of the fleet, or of
// this one.
func (s *session) find(q history.Query, last int, here bool) (fleetsearch.Page, error) {
	if !here && s.config.Fleet.On() && s.history.Fleet != nil {
		page, err := pages(s.ctx, q, last, func(ctx context.Context, q history.Query) (fleetsearch.Page, error) {
			return s.history.Fleet(ctx, q, "")
		})
		if !errors.Is(err, admin.ErrNoFleet) && !local.IsTooOld(err) {
			return page, err
		}
	}
	return pages(s.ctx, q, last, func(ctx context.Context, q history.Query) (fleetsearch.Page, error) {
		page, err := s.history.Find(ctx, q)
		return fleetsearch.Alone(page), err
	})
}

// pages asks for page after page until there are so many decisions.
func pages(ctx context.Context, q history.Query, last int, find func(context.Context, history.Query) (fleetsearch.Page, error)) (found fleetsearch.Page, err error) {
	found.Decisions = []fleetsearch.Decision{}
	for {
		q.Limit = last - len(found.Decisions)
		page, err := find(ctx, q)
		if err != nil {
			return found, err
		}
		page.Decisions = append(found.Decisions, page.Decisions...)
		found = page
		if page.Next == "" || page.Incomplete || !page.Whole() || len(found.Decisions) >= last {
			return found, nil
		}
		q.Before = page.Next
	}
}
