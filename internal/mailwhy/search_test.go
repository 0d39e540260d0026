package mailwhy

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// logLine returns a line as the gate writes it, n seconds after midnight.
func logLine(n int, msg, id string, attrs ...string) string {
	at := time.Date(2026, 11, 22, 0, 0, n, 0, time.UTC)
	line := fmt.Sprintf("time=%s level=INFO msg=%q", at.Format("2006-01-02T15:04:05.000Z07:00"), msg)
	if id != "" {
		line += " id=" + id
	}
	return line + " " + strings.Join(attrs, " ") + "\n"
}

func id(n int) string { return fmt.Sprintf("AAAAAAAA%04d", n) }

// hash is a hash of the test's.
func hash(string) string { return "0123456789abcdef" }

func search(t *testing.T, q Query, log string) Result {
	t.Helper()
	if q.Most == 0 {
		q.Most = 100
	}
	s := NewSearch(q)
	if err := s.Read(context.Background(), strings.NewReader(log), nil); err != nil {
		t.Fatal(err)
	}
	return s.Result()
}

func address(t *testing.T, text string) Query {
	t.Helper()
	a, err := NewAddress(text, hash)
	if err != nil {
		t.Fatal(err)
	}
	return Query{Address: a}
}

// found returns the ids of what was found, each with the number of its lines.
func found(r Result) (ids []string) {
	for _, m := range r.Messages {
		name := m.ID
		if !m.Whole {
			name += "?"
		}
		ids = append(ids, fmt.Sprintf("%s %d", name, len(m.Records)))
	}
	return ids
}

func TestSearchAddress(t *testing.T) {
	log := logLine(1, "accepted", id(1), "from=<A@Example.org>", "to=<b@example.net>,<c@example.net>") +
		logLine(2, "accepted", id(2), "from=<0123456789abcdef>", "to=<fedcba9876543210>") +
		logLine(3, "accepted", id(3), "from=<*@example.org>", "to=<*@example.net>") +
		logLine(4, "monitored", id(4), "from=<x@example.com>", "identity=From", "sender=a@example.org") +
		logLine(5, "accepted", id(4), "from=<x@example.com>", `to="<d@example.net> and 970 more"`) +
		logLine(6, "accepted", id(5), "from=<aa@example.org>", "to=<a@example.org.example>") +
		logLine(7, "command refused", "", `command="RCPT TO:<a@example.org> X=Y"`) +
		logLine(8, "accepted", id(6), "from=<>", "to=<a@bücher.example>") +
		logLine(9, "disconnected", "", `helo="a@example.org"`) +
		"another program's line about a@example.org\n"
	for _, test := range []struct {
		address string
		want    []string
	}{
		{"a@example.org", []string{id(1) + " 1", id(2) + " 1", id(3) + "? 1", id(4) + " 2", " 1"}},
		{"<A@EXAMPLE.ORG>", []string{id(1) + " 1", id(2) + " 1", id(3) + "? 1", id(4) + " 2", " 1"}},
		{"c@example.net", []string{id(1) + " 1", id(2) + " 1", id(3) + "? 1"}},
		{"d@example.net", []string{id(2) + " 1", id(3) + "? 1", id(4) + " 2"}}, // both lines
		{"a@xn--bcher-kva.example", []string{id(2) + " 1", id(6) + " 1"}},
		{"a@BÜCHER.example", []string{id(2) + " 1", id(6) + " 1"}},
		{"<>", []string{id(6) + " 1"}},
	} {
		if got := found(search(t, address(t, test.address), log)); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.address, got, test.want)
		}
	}
	if r := search(t, address(t, "a@example.org"), log); r.Messages[0].Roles != Sender || r.Messages[4].Roles != Recipient {
		t.Errorf("roles %v, %v", r.Messages[0].Roles, r.Messages[4].Roles)
	}
	q := address(t, "c@example.net")
	q.Since = time.Date(2026, 11, 22, 0, 0, 2, 0, time.UTC)
	if got := found(search(t, q, log)); !slices.Equal(got, []string{id(2) + " 1", id(3) + "? 1"}) {
		t.Errorf("since then: %q", got)
	}
}

func TestSearchID(t *testing.T) {
	log := logLine(1, "refused", id(1), "from=<x@spam.example>") +
		logLine(2, "accepted", id(2), "from=<"+id(1)+"@example.org>") +
		logLine(3, "accepted", id(1), "from=<x@spam.example>") +
		`time=2026-11-22T00:00:04.000Z level=WARN msg="log lines dropped" dropped=12 since=2026-11-22T00:00:00.000Z` + "\n" +
		logLine(4, "refused", id(1))[:60] // cut off
	r := search(t, Query{ID: id(1)}, log+log)
	if got := found(r); !slices.Equal(got, []string{id(1) + " 2"}) || r.Messages[0].Outcome() != "refused, accepted" || r.Dropped != 24 {
		t.Errorf("%q, %+v", got, r)
	}
	if r.First.Second() != 1 || r.Last.Second() != 4 {
		t.Errorf("from %v to %v", r.First, r.Last)
	}
}

// TestSearchBounded reads more messages, lines of one message and bytes of a line than are kept.
func TestSearchBounded(t *testing.T) {
	var log bytes.Buffer
	for i := range 500 {
		log.WriteString(logLine(i, "accepted", id(i), "from=<a@example.org>"))
	}
	log.WriteString(strings.Repeat("a@example.org ", maxLine/4) + "\n")
	for i := range 300 {
		log.WriteString(logLine(1000+i, "refused", id(499), "from=<a@example.org>"))
	}
	q := address(t, "a@example.org")
	q.Most = 3
	r := search(t, q, log.String())
	want := []string{id(497) + " 1", id(498) + " 1", fmt.Sprintf("%s %d", id(499), maxRecords)}
	if got := found(r); !slices.Equal(got, want) || r.Omitted != 497 || r.Skipped != 1 || r.Messages[2].More != 301-maxRecords {
		t.Errorf("%q, %d omitted, %d skipped", got, r.Omitted, r.Skipped)
	}
}

// TestFiles has a log, what was rotated away of it, and other files.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	for i, name := range []string{"gate.log", "gate.log.1", "gate.log-20261101.gz", "gate.logs", "other.log"} {
		path := filepath.Join(dir, name)
		text := logLine(i, "accepted", id(i), "from=<a@example.org>")
		if strings.HasSuffix(name, ".gz") {
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			z.Write([]byte(text))
			z.Close()
			text = packed.String()
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		at := now.Add(-time.Duration(i) * 24 * time.Hour)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "gate.log.d"), 0o700); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "gate.log")
	for _, test := range []struct {
		since time.Duration
		want  []string
	}{
		{1000 * time.Hour, []string{id(0), id(1), id(2)}},
		{25 * time.Hour, []string{id(0), id(1)}},
	} {
		s := NewSearch(Query{Address: address(t, "a@example.org").Address, Most: 10})
		files, err := Files(log, now.Add(-test.since))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if err := s.ReadFile(context.Background(), file); err != nil {
				t.Error(err)
			}
		}
		var got []string
		for _, m := range s.Result().Messages {
			got = append(got, m.ID)
		}
		if !slices.Equal(got, test.want) || !strings.HasSuffix(files[len(files)-1], "gate.log") {
			t.Errorf("since %v: %q of %q", test.since, got, files)
		}
	}
	if _, err := Files(filepath.Join(dir, "none.log"), time.Time{}); !os.IsNotExist(err) {
		t.Errorf("no log: %v", err)
	}
	if _, err := Files(filepath.Join(dir, "gate.log.d"), time.Time{}); err == nil {
		t.Error("a directory")
	}
	torn := filepath.Join(dir, "torn.log.gz")
	packed, err := os.ReadFile(filepath.Join(dir, "gate.log-20261101.gz"))
	if err == nil {
		err = os.WriteFile(torn, packed[:len(packed)-9], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := NewSearch(Query{ID: id(2), Most: 1})
	if err := s.ReadFile(context.Background(), torn); err == nil {
		t.Error("a file that was cut off is whole")
	}
}

func TestJournalMessage(t *testing.T) {
	for line, want := range map[string]string{
		`{"MESSAGE":"time=x","__REALTIME_TIMESTAMP":"1"}`: "time=x",
		`{"MESSAGE":[116,105,255]}`:                       "ti\xff",
		`{"MESSAGE":[300]}`:                               "",
		`{"MESSAGE":null}`:                                "",
		`{"MESSAGE":["a","b"]}`:                           "",
		`{}`:                                              "",
		`not JSON`:                                        "",
	} {
		if got := journalMessage([]byte(line)); string(got) != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// TestExplained compares the explanations with the log lines about messages in docs/log.md.
func TestExplained(t *testing.T) {
	page, err := os.ReadFile("../../docs/log.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "\n## Lines about messages, senders and recipients\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(section, -1)
	if !ok || len(rows) < 15 {
		t.Fatalf("docs/log.md has %d rows", len(rows))
	}
	for _, row := range rows {
		for _, msg := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			known := msg[1] == "msg" // the head of the table
			for text := range explanations {
				known = known || strings.HasPrefix(text, msg[1])
			}
			if !known {
				t.Errorf("%q is not explained", msg[1])
			}
		}
	}
	for msg := range explanations {
		r := &Record{Msg: msg, attrs: []attr{{"from", "<a\x1b@example.org>"}, {"to", "<b@example.net>"}, {"list", "l"}, {"entry", "e"}, {"identity", "From"}, {"sender", "c@example.org"}, {"reply", "550 no\nyes"}, {"error", "e"}}}
		if text := Explain(r); strings.ContainsAny(text, "\x1b\n") || strings.Contains(text, "  ") || !strings.HasSuffix(text, ".") {
			t.Errorf("%s: %q", msg, text)
		}
	}
}
