package decisions

import (
	"encoding/json"
	"time"

	"spamgate/internal/sqlite"
)

// version is the version of the files' schema. Files of a newer version are left alone.
const version = 1

// schema makes a database. A row of decisions has the number n, without gaps, and the time
// "at" in nanoseconds, which never decreases: where the clock went back, "time" is the
// decision's own. The %d is the seed of the terms: that of the other files, so that the terms of
// two files can be compared.
const schema = `
PRAGMA journal_mode = WAL;
BEGIN;
CREATE TABLE decisions (
	n INTEGER PRIMARY KEY, at INTEGER NOT NULL, time INTEGER, count INTEGER, last INTEGER,
	id TEXT, event TEXT, level TEXT, door TEXT, listener TEXT, client TEXT, helo TEXT,
	sender TEXT, recipients TEXT, more_recipients INTEGER, header_senders TEXT, more_header_senders INTEGER,
	message_id TEXT, action TEXT, list TEXT, entry TEXT, reason TEXT, reply TEXT,
	size INTEGER, duration INTEGER, attrs TEXT);
CREATE INDEX counted ON decisions (n) WHERE count IS NOT NULL;
CREATE TABLE settings (seed INTEGER NOT NULL, skew INTEGER NOT NULL);
CREATE TABLE recent (first INTEGER PRIMARY KEY, count INTEGER NOT NULL, postings BLOB NOT NULL);
CREATE TABLE blocks (first INTEGER PRIMARY KEY, count INTEGER NOT NULL, buckets INTEGER NOT NULL, base INTEGER NOT NULL);
CREATE TABLE postings (bucket INTEGER PRIMARY KEY, postings BLOB NOT NULL);
INSERT INTO settings VALUES (%d, 0);
PRAGMA user_version = 1;
COMMIT;`

const (
	insertRow = `INSERT INTO decisions VALUES (?,?,?,?,?, ?,?,?,?,?,?,?, ?,?,?,?,?, ?,?,?,?,?,?, ?,?,?)`
	selectRow = `SELECT * FROM decisions WHERE n = ?`
	updateRow = `UPDATE decisions SET count = ?, last = ? WHERE n = ?`
)

// bind sets the parameters of insertRow.
func bind(s *sqlite.Stmt, n, offset int64, d *Decision) {
	i := 0
	number := func(v, none int64) {
		if i++; v == none {
			s.BindNull(i)
		} else {
			s.BindInt(i, v)
		}
	}
	text := func(v string) {
		if i++; v == "" {
			s.BindNull(i)
		} else {
			s.BindText(i, v)
		}
	}
	number(n, 0)
	number(offset, 0)
	number(d.Time.UnixNano(), offset)
	number(int64(d.Count), 1)
	number(d.Last.UnixNano(), d.Time.UnixNano())
	for _, v := range []string{d.ID, d.Event, d.Level, d.Door, d.Listener, d.Client, d.Helo, d.Sender} {
		text(v)
	}
	text(list(d.Recipients))
	number(int64(d.MoreRecipients), 0)
	text(list(d.HeaderSenders))
	number(int64(d.MoreHeaderSenders), 0)
	for _, v := range []string{d.MessageID, d.Action, d.List, d.Entry, d.Reason, d.Reply} {
		text(v)
	}
	number(d.Size, 0)
	number(int64(d.Duration), 0)
	text(attrs(d.Attrs))
}

// scan reads the columns of selectRow.
func scan(s *sqlite.Stmt) (d Decision) {
	i := 1 // after n
	number := func(none int64) int64 {
		if i++; s.Null(i - 1) {
			return none
		}
		return s.Int(i - 1)
	}
	offset := number(0)
	d.Time = time.Unix(0, number(offset)).UTC()
	d.Count = int(number(1))
	d.Last = time.Unix(0, number(d.Time.UnixNano())).UTC()
	text := func() string {
		i++
		return s.Text(i - 1)
	}
	for _, v := range []*string{&d.ID, &d.Event, &d.Level, &d.Door, &d.Listener, &d.Client, &d.Helo, &d.Sender} {
		*v = text()
	}
	json.Unmarshal([]byte(text()), &d.Recipients)
	d.MoreRecipients = int(number(0))
	json.Unmarshal([]byte(text()), &d.HeaderSenders)
	d.MoreHeaderSenders = int(number(0))
	for _, v := range []*string{&d.MessageID, &d.Action, &d.List, &d.Entry, &d.Reason, &d.Reply} {
		*v = text()
	}
	d.Size = number(0)
	d.Duration = time.Duration(number(0))
	var pairs [][2]string
	json.Unmarshal([]byte(text()), &pairs)
	for _, p := range pairs {
		d.Attrs = append(d.Attrs, Attr{p[0], p[1]})
	}
	return d
}

// list returns addresses as a JSON array, "" for none.
func list(all []string) string {
	if len(all) == 0 {
		return ""
	}
	b, _ := json.Marshal(all)
	return string(b)
}

// attrs returns attributes as a JSON array of pairs, "" for none.
func attrs(all []Attr) string {
	if len(all) == 0 {
		return ""
	}
	pairs := make([][2]string, len(all))
	for i, a := range all {
		pairs[i] = [2]string{a.Key, a.Value}
	}
	b, _ := json.Marshal(pairs)
	return string(b)
}
