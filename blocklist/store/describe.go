package store

import (
	"errors"

	"spamgate/blocklist"
)

// describeList returns the stats of a list as it serves.
func describeList(l *List, r scanResult) blocklist.ListStats {
	v := r.version()
	stats := blocklist.ListStats{
		Name: l.Name, Type: l.Type, Action: l.Action, HeaderAction: l.HeaderAction, Stages: l.Stages,
		PerRecipient: l.PerRecipient, ProvenBy: l.ProvenBy,
		URL: l.URL, Zone: l.Zone,
		Entries: v.Entries, Exceptions: v.Exceptions, Duplicates: int(v.index.Segment().Duplicates()),
		Invalid: v.Invalid, Unsupported: v.Unsupported,
		Expired: v.Expired, Protected: v.Protected, Disallowed: v.Disallowed, Skipped: v.Skipped, NextExpiry: v.nextUntil(),
		Files:    v.Files,
		Problems: v.Problems,
		Notes:    v.notes(),
		Bytes:    v.index.Segment().Size(),
		Loaded:   v.Loaded,
		Err:      r.err,
		LastGood: r.err != nil && r.good != nil,
		Since:    r.since,
		Held:     errors.Is(r.err, ErrHeld),
		Retry:    errors.Is(r.err, ErrKilled),
		Pinned:   r.pin,
	}
	if r.good != nil {
		stats.Sum = sumOf(v.stamps)
	}
	if acceptable(r.err) {
		stats.HeldSum = sumOf(r.stamps)
	}
	if len(v.Files) > 0 {
		stats.Format, stats.Packed = v.Files[0].Format, v.Files[0].Packed
	}
	return stats
}
