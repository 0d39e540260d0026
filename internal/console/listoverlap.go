package console

import (
	"context"
	"fmt"
	"io"

	"spamgate/blocklist/listfile"
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
