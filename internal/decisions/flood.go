package decisions

import (
	"encoding/binary"
	"time"

	"github.com/zeebo/xxh3"

	"spamgate/blocklist/verdict"
)

// Of equal refusals within a window the first ones have rows. The last of these counts the others.
const (
	floodRows   = 10
	floodWindow = time.Minute
	floodKeys   = 16384 // are remembered
)

// The rows of refusals of one client by one list may take so much of the history in an hour that it
// would still reach back for half of its time; but at least so many bytes. A row for all counts the
// others in the hour.
const (
	shareWindow = time.Hour
	shareLeast  = 256 << 10
)

// Others is the sender in a row of refusals that have different ones.
const Others = "*"

// floods counts equal refusals, and those of one client.
type floods struct {
	seen   map[xxh3.Uint128]*flood
	shares map[xxh3.Uint128]*share
	hasher *xxh3.Hasher128
	length []byte // scratch
}

// flood is a number of equal refusals.
type flood struct {
	start time.Time
	rows  int
	row   *Decision // the last row, before it is written
	n     int64     // and its number, afterwards
	count int       // what the row stands for
	last  time.Time
	dirty bool // the row has an older count, and a run has the new one
}

// share is what the refusals of one client by one list have of the history.
type share struct {
	start  time.Time
	bytes  int64
	others *flood // of the refusals that have no room; nil before there is one
}

func newFloods() *floods {
	return &floods{seen: map[xxh3.Uint128]*flood{}, shares: map[xxh3.Uint128]*share{}, hasher: xxh3.NewSeed128(uint64(time.Now().UnixNano()))}
}

// renew forgets the rows: they are in a file that is not written any more.
func (f *floods) renew() {
	clear(f.seen)
	for _, s := range f.shares {
		s.others = nil
	}
}

// merges reports whether a decision may be merged with equal ones.
func merges(d *Decision) bool { return !verdict.EventOf(d.Event).Delivered }

// key returns what equal refusals have in common, as a hash.
func (f *floods) key(d *Decision) xxh3.Uint128 {
	return f.hash(append([]string{foldClient(d.Client), d.Sender, d.List, d.Entry, d.Action, d.Event}, d.Recipients...)...)
}

func (f *floods) hash(texts ...string) xxh3.Uint128 {
	f.hasher.Reset()
	for _, s := range texts {
		f.length = binary.AppendUvarint(f.length[:0], uint64(len(s)))
		f.hasher.Write(f.length)
		f.hasher.WriteString(s)
	}
	return f.hasher.Sum128()
}

// add counts a decision. It returns the flood that it belongs to, nil for none, and the row to be
// written, nil if it is counted in another one. Room is the most bytes of a share.
func (f *floods) add(d *Decision, room int64) (flow *flood, row *Decision) {
	if !merges(d) {
		return nil, d
	}
	key := f.key(d)
	flow = f.seen[key]
	if flow == nil || d.Time.Sub(flow.start).Abs() >= floodWindow {
		if flow == nil && len(f.seen) >= floodKeys {
			f.forget(d.Time)
		}
		flow = &flood{start: d.Time}
		f.seen[key] = flow
	}
	if flow.rows < floodRows {
		s := f.share(d)
		if size := int64(d.size()); s.others == nil && s.bytes+size <= room {
			s.bytes += size
			flow.rows++
			flow.row, flow.n, flow.count = d, 0, d.Count
			return flow, d
		}
		if s.others == nil {
			row := d.ofOthers()
			s.others = &flood{start: d.Time, rows: floodRows, row: row, count: row.Count}
			return s.others, row
		}
		flow = s.others
	}
	flow.count += d.Count
	if d.Time.After(flow.last) {
		flow.last = d.Time
	}
	return flow, nil
}

// share returns the share that a decision counts in.
func (f *floods) share(d *Decision) *share {
	key := f.hash(foldClient(d.Client), d.List)
	s := f.shares[key]
	if s == nil && len(f.shares) >= floodKeys {
		clear(f.shares)
	}
	if s == nil || d.Time.Sub(s.start).Abs() >= shareWindow {
		s = &share{start: d.Time}
		f.shares[key] = s
	}
	return s
}

// ofOthers returns a row for refusals that have only the client and the list in common.
func (d *Decision) ofOthers() *Decision {
	return &Decision{
		ID: d.ID, Time: d.Time, Last: d.Last, Event: d.Event, Level: d.Level, Count: d.Count, Door: d.Door, Listener: d.Listener,
		Client: d.Client, Sender: Others, Action: d.Action, List: d.List,
		Reason: "refusals of this client by this list, which are too many for a row each",
	}
}

// forget removes the floods that are over; all, if that does not make room.
func (f *floods) forget(now time.Time) {
	for key, flood := range f.seen {
		if now.Sub(flood.start).Abs() >= floodWindow {
			delete(f.seen, key)
		}
	}
	if len(f.seen) >= floodKeys {
		clear(f.seen)
	}
}
