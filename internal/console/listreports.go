package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"time"

	"spamgate/blocklist/listfile"
	"spamgate/internal/admin"
	"spamgate/internal/listcompare"
	"spamgate/internal/listfiles"
)

// overlapView is what the page about the overlap of the lists shows.
type overlapView struct {
	Work    *work
	Report  *listcompare.OverlapReport
	Why     string
	Lists   int
	Entries int
	Stale   bool // the lists have changed since
}

// overlapResult is the result of a comparison.
type overlapResult struct {
	report     *listcompare.OverlapReport
	generation uint64
}

const overlapKey = "overlap"

func (x *exchange) overlap() error {
	v := overlapView{}
	for _, l := range x.console.Gate.Status().Lists {
		if l.DNS == nil && !l.PerRecipient {
			v.Lists++
			v.Entries += l.Entries
		}
	}
	v.Work = x.work(overlapKey, v.Entries, x.console.compareAll)
	result, why := resultOf[*overlapResult](v.Work)
	if v.Why = why; result != nil {
		v.Report, v.Stale = result.report, result.generation != x.console.Gate.Generation()
	}
	return x.render("overlap", view{Title: "Overlap of the lists", Nav: "/lists", Data: v, Refresh: refreshWhile(v.Work)})
}

func (x *exchange) startOverlap() error {
	return x.startWork(overlapKey, "/overlap", x.console.compareAll)
}

// compareAll compares all lists with each other.
func (c *Console) compareAll(ctx context.Context) (any, error) {
	config := c.Config()
	generation := c.Gate.Generation()
	guarded, key := listfiles.NewProtection(config), listfiles.NewKey()
	var lists []*listfiles.List
	for _, l := range listfiles.Readable(config, io.Discard) {
		if !l.PerRecipient {
			lists = append(lists, l)
		}
	}
	p := listcompare.NewOverlap(lists, key)
	scan := listfiles.NewScan(ctx, lists, io.Discard)
	for _, l := range lists {
		s, err := listfiles.Segment(scan, l, key, func(e listfile.Entry) bool { return guarded.LeftOut(l, e).Omitted() })
		if err != nil {
			return nil, err
		}
		p.Add(s)
	}
	if len(lists) == 0 {
		return nil, fmt.Errorf("no list can be compared")
	}
	if err := p.Compare(ctx, func(float64) {}); err != nil {
		return nil, err
	}
	return &overlapResult{p.Report(""), generation}, nil
}

// unusedView is what the page of unused entries shows.
type unusedView struct {
	listTab
	Days   int
	Spans  []int
	Work   *work
	Unused *unusedEntries
	Why    string // why they are not known
}

// unusedEntries are the entries of a list that have not matched.
type unusedEntries struct {
	Header  admin.UnusedHeader
	End     admin.UnusedEnd
	Entries []admin.UnusedEntry // the first ones
	Alone   string              // why the other gates of the fleet were not asked
}

// Recent reports whether it is not known what matched on all the days.
func (u *unusedEntries) Recent() bool { return u.Header.Known > u.Header.Since }

// maxUnused is the number of unused entries that a page shows.
const maxUnused = 500

// unusedSpans are the numbers of days that the page offers.
var unusedSpans = []int{7, 30, 90, 365}

func (x *exchange) unused() error {
	v, days, err := x.unusedView()
	if err != nil {
		return err
	}
	v.Work = x.work(unusedKey(v.Name, days), v.Entries, func(ctx context.Context) (any, error) { return x.console.unused(ctx, v.Name, days) })
	v.Unused, v.Why = resultOf[*unusedEntries](v.Work)
	return x.render("unused", view{Title: "Unused entries of " + v.Name, Nav: "/lists", Data: v, Refresh: refreshWhile(v.Work)})
}

func (x *exchange) unusedView() (v unusedView, days int, err error) {
	if v.listTab, _, err = x.listTab("unused"); err != nil {
		return v, 0, err
	}
	v.Spans, v.Days = unusedSpans, 30
	for _, span := range unusedSpans {
		if x.r.FormValue("days") == number(span) {
			v.Days = span
		}
	}
	return v, v.Days, nil
}

func unusedKey(list string, days int) string { return "unused " + list + " " + number(days) }

func (x *exchange) startUnused() error {
	v, days, err := x.unusedView()
	if err != nil {
		return err
	}
	return x.startWork(unusedKey(v.Name, days), "/lists/"+url.PathEscape(v.Name)+"/unused?days="+number(days),
		func(ctx context.Context) (any, error) { return x.console.unused(ctx, v.Name, days) })
}

// errRecent ends a search whose answer would be about fewer days than were asked for.
var errRecent = errors.New("matches are not known for all the days")

// unused returns the entries of a list that have not matched for some days, the first in the
// order of the list's lines: on no gate if a fleet shares the list, or on this one if the others
// cannot be asked.
func (c *Console) unused(ctx context.Context, list string, days int) (*unusedEntries, error) {
	u, err := c.unusedOn(ctx, list, days, false)
	if !errors.Is(err, admin.ErrNotAsked) {
		return u, err
	}
	why := err.Error()
	if u, err = c.unusedOn(ctx, list, days, true); err == nil {
		u.Alone = why
	}
	return u, err
}

// unusedOn is unused for all gates, or for this one.
func (c *Console) unusedOn(ctx context.Context, list string, days int, here bool) (*unusedEntries, error) {
	var u unusedEntries
	since := c.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -days)
	order := func(a, b admin.UnusedEntry) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	}
	end, err := c.Gate.Unused(ctx, list, since, here, func(h admin.UnusedHeader) error {
		u.Header = h
		if u.Recent() {
			return errRecent
		}
		return nil
	}, func(e admin.UnusedEntry) error {
		if pos, _ := slices.BinarySearchFunc(u.Entries, e, order); pos < maxUnused {
			u.Entries = slices.Insert(u.Entries, pos, e)
			u.Entries = u.Entries[:min(len(u.Entries), maxUnused)]
		}
		return nil
	})
	u.End = end
	if errors.Is(err, errRecent) {
		err = nil
	}
	return &u, err
}
