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

// floods counts equal refusals.
type floods struct {
	seen   map[xxh3.Uint128]*flood
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

func newFloods() *floods {
	return &floods{seen: map[xxh3.Uint128]*flood{}, hasher: xxh3.NewSeed128(uint64(time.Now().UnixNano()))}
}

// merges reports whether a decision may be merged with equal ones.
func merges(d *Decision) bool { return !verdict.EventOf(d.Event).Delivered }

// key returns what equal refusals have in common, as a hash.
func (f *floods) key(d *Decision) xxh3.Uint128 {
	h := f.hasher
	h.Reset()
	text := func(s string) {
		f.length = binary.AppendUvarint(f.length[:0], uint64(len(s)))
		h.Write(f.length)
		h.WriteString(s)
	}
	text(foldClient(d.Client))
	for _, s := range []string{d.Sender, d.List, d.Entry, d.Action, d.Event} {
		text(s)
	}
	for _, r := range d.Recipients {
		text(r)
	}
	return h.Sum128()
}

// add counts a decision. It returns the flood that it belongs to, nil for none, and whether it needs
// no row of its own.
func (f *floods) add(d *Decision) (of *flood, counted bool) {
	if !merges(d) {
		return nil, false
	}
	key := f.key(d)
	of = f.seen[key]
	if of == nil || d.Time.Sub(of.start).Abs() >= floodWindow {
		if of == nil && len(f.seen) >= floodKeys {
			f.forget(d.Time)
		}
		of = &flood{start: d.Time}
		f.seen[key] = of
	}
	if of.rows < floodRows {
		of.rows++
		of.row, of.n, of.count = d, 0, d.Count
		return of, false
	}
	of.count += d.Count
	if d.Time.After(of.last) {
		of.last = d.Time
	}
	return of, true
}

// forget removes the floods that are over; all, if that does not make room.
func (f *floods) forget(now time.Time) {
	for key, of := range f.seen {
		if now.Sub(of.start).Abs() >= floodWindow {
			delete(f.seen, key)
		}
	}
	if len(f.seen) >= floodKeys {
		clear(f.seen)
	}
}
