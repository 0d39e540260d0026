package decisions

import (
	"fmt"
	"math/bits"
)

// A block is indexed when it has so many rows, or entries in the table recent. Until then each
// batch of rows has its postings in an entry of that table, which a search reads as a whole.
var (
	blockRows   = 16384
	blockRecent = 1024
)

const bucketPostings = 128 // about so many postings are in a bucket

// index stores the postings of the newest rows, and makes a block if there are enough.
func (w *writeFile) index(rows int) error {
	if rows == 0 {
		return nil
	}
	w.postings = sortPostings(w.postings)
	w.encoded = encodePostings(w.encoded[:0], w.postings)
	w.insertRecent.BindInt(1, w.n+1)
	w.insertRecent.BindInt(2, int64(rows))
	w.insertRecent.BindBlob(3, w.encoded)
	if err := w.insertRecent.Run(); err != nil {
		return err
	}
	w.recent++
	w.recentRows += rows
	if w.recentRows < blockRows && w.recent < blockRecent {
		return nil
	}
	return w.makeBlock()
}

// makeBlock turns the table recent into a block: its postings in buckets, by term.
func (w *writeFile) makeBlock() error {
	first, rows, err := w.readRecent()
	if err != nil {
		return err
	}
	w.postings = sortPostings(w.postings)
	buckets := len(w.postings)/bucketPostings + 1
	base, err := w.db.Int("SELECT max(bucket) + 1 FROM postings")
	if err != nil {
		return err
	}
	insert, err := w.db.Prepare("INSERT INTO postings VALUES (?, ?)")
	if err != nil {
		return err
	}
	defer insert.Close()
	for rest := w.postings; len(rest) > 0; {
		b, n := rest[0].term.bucket(buckets), 1
		for n < len(rest) && rest[n].term.bucket(buckets) == b {
			n++
		}
		w.encoded = encodePostings(w.encoded[:0], rest[:n])
		insert.BindInt(1, base+b)
		insert.BindBlob(2, w.encoded)
		if err := insert.Run(); err != nil {
			return err
		}
		rest = rest[n:]
	}
	w.recent, w.recentRows = 0, 0
	return w.db.Exec(fmt.Sprintf("DELETE FROM recent; INSERT INTO blocks VALUES (%d, %d, %d, %d)", first, rows, buckets, base))
}

// readRecent reads the table recent into w.postings.
func (w *writeFile) readRecent() (first, rows int64, err error) {
	s, err := w.db.Prepare("SELECT first, count, postings FROM recent ORDER BY first")
	if err != nil {
		return 0, 0, err
	}
	defer s.Close()
	w.postings = w.postings[:0]
	for {
		row, err := s.Step()
		if err != nil || !row {
			return first, rows, err
		}
		if rows == 0 {
			first = s.Int(0)
		}
		offset := uint32(s.Int(0) - first)
		rows += s.Int(1)
		err = decodePostings(s.Blob(2), func(term) bool { return true }, func(t term, rows []uint32) {
			for _, r := range rows {
				w.postings = append(w.postings, posting{t, offset + r})
			}
		})
		if err != nil {
			return 0, 0, err
		}
	}
}

// bucket returns the bucket of a term, of so many.
func (t term) bucket(buckets int) int64 {
	high, _ := bits.Mul64(uint64(t)<<32, uint64(buckets))
	return int64(high)
}
