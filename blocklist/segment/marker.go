package segment

// markerKind is the kind of a marker: see the package's comment.
const markerKind = 7

// forEnd ends the recipient's side of a key. No address contains it.
const forEnd = "\t"

// AppendFor appends the key of an entry for a recipient to b, and with an empty key that of
// the recipient's marker.
func AppendFor[R, K string | []byte](b []byte, recipient R, key K) []byte {
	b = append(b, recipient...)
	b = append(b, forEnd...)
	return append(b, key...)
}

// Indexed returns the key under which a segment holds the entry: see [Segment.Lookup].
func (e *Entry) Indexed() string {
	if e.For == "" {
		return e.Key
	}
	return e.For + forEnd + e.Key
}

// isMarker reports whether a stored record is a marker.
func isMarker(stored []byte) bool { return len(stored) > 0 && stored[0]&kindMask == markerKind }

// recentMarkers is the number of markers that an Adder remembers, so that it does not add
// those of a few thousand recipients again for each line. Finish drops the others.
const recentMarkers = 1 << 13

// markers are what an Adder remembers of markers.
type markers struct {
	last   []byte   // the recipient of the last entry: lines often come in groups
	key    []byte   // reused, like record
	record []byte   //
	recent []uint64 // hashes of markers that were added, each in its only place
}

// mark adds the marker of a recipient, unless it was added just before. The hash is keyed:
// nobody can prepare another recipient with the same one.
func (a *Adder) mark(recipient string) error {
	m := &a.markers
	if string(m.last) == recipient {
		return nil
	}
	m.last = append(m.last[:0], recipient...)
	m.key = AppendFor(m.key[:0], recipient, "")
	if m.recent == nil {
		m.recent = make([]uint64, recentMarkers)
	}
	hash := a.builder.o.Key.Hash(m.key)
	place := &m.recent[hash%recentMarkers]
	if *place == hash {
		return nil
	}
	*place = hash
	e := Entry{For: recipient, Kind: markerKind}
	m.record = appendRecord(append(m.record[:0], make([]byte, recordHead)...), &e, 0, false)
	return a.append(a.seal(m.record), m.record)
}
