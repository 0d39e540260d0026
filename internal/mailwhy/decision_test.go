package mailwhy

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"spamgate/internal/decisions"
)

// TestFromDecision: what the history has of a line of the log is said in the same words.
func TestFromDecision(t *testing.T) {
	for _, line := range []string{
		`time=2026-11-22T15:39:26.839Z level=INFO msg=refused id=2ZFPDJSVUUAR action=reject client=203.0.113.7:40596 helo=client.example.com tls=none ` +
			`from=<x@mail.spam.example> to=<you@example.net> identity=envelope list=blocked entry=spam.example source=b.txt:6 reason="unsolicited mail" ` +
			`reply="550 5.7.1 <x@mail.spam.example> refused: list blocked (unsolicited mail); id 2ZFPDJSVUUAR" duration=208µs`,
		`time=2026-11-22T15:39:26.839Z level=INFO msg=accepted id=2ZFPDJSVUUAR from=<> to=<a@example.net>,<b@example.net> server=smtp://192.0.2.1:25 next_hop="250 Ok" size=5`,
		`time=2026-11-22T15:39:26.839Z level=INFO msg="refused by the next hop" id=2ZFPDJSVUUAR from=<a@x.example> to=<a@example.net> next_hop="550 no"`,
		`time=2026-11-22T15:39:26.839Z level=INFO msg="refused by the next hop" id=2ZFPDJSVUUAR from=<a@x.example> to=<a@example.net> reply="451 later" next_hop="550 no" size=5`,
		`time=2026-11-22T15:39:26.839Z level=INFO msg=monitored id=2ZFPDJSVUUAR from=<a@x.example> identity=From sender=b@y.example list=l entry=y.example source=l.txt:1 would=reject`,
		`time=2026-11-22T15:39:26.839Z level=INFO msg=accepted id=2ZFPDJSVUUAR action=tag door=policy_service listener=postfix from=<a@x.example> to=<y@example.net> identity=envelope list=l entry=x.example source=l.txt:1`,
	} {
		logged, ok := ParseLine([]byte(line))
		if !ok {
			t.Fatalf("no line: %s", line)
		}
		r := slog.NewRecord(logged.Time, slog.LevelInfo, logged.Msg, 0)
		for _, a := range logged.attrs {
			r.AddAttrs(slog.String(a.key, a.value))
		}
		kept := FromDecision(decisions.FromLog(r, Recipients(logged), nil))
		if got, want := Explain(kept), Explain(logged); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
		got, want := Message{Records: []*Record{kept}}, Message{Records: []*Record{logged}}
		if got, want := got.Head(), want.Head(); len(got) != len(want) || got[0] != want[0] || got[len(got)-1] != want[len(want)-1] {
			t.Errorf("%q, want %q", got, want)
		}
		for key, value := range logged.Attrs() {
			if kept.Get(key) != value {
				t.Errorf("%s=%q, want %q", key, kept.Get(key), value)
			}
		}
	}
}

// TestRepeated: a row that stands for others says so.
func TestRepeated(t *testing.T) {
	at := time.Date(2026, 11, 22, 15, 0, 0, 0, time.UTC)
	row := decisions.Decision{ID: "A", Time: at, Last: at.Add(time.Minute), Event: "refused", Count: 25}
	if got := Explain(FromDecision(&row)); !strings.Contains(got, " That happened 25 times, with an id each, until 2026-11-22 ") {
		t.Error(got)
	}
	row.Count = 1
	if got := Explain(FromDecision(&row)); strings.Contains(got, "happened") {
		t.Error(got)
	}
}

// TestSearchHistory searches a history and then a log that has more: each decision appears once, also
// those that a row of the history stands for, and of too many messages the oldest are omitted.
func TestSearchHistory(t *testing.T) {
	at := func(n int) time.Time { return time.Date(2026, 11, 22, 0, 0, n, 600_000, time.UTC) } // the log has whole milliseconds
	kept := func(n, last int, id string, to ...string) *decisions.Decision {
		return &decisions.Decision{ID: id, Time: at(n), Last: at(last), Count: 1 + last - n, Event: "refused", Level: "INFO", Client: "192.0.2.1:25",
			Sender: "x@spam.example", Recipients: to, Action: "reject", List: "l", Entry: "spam.example"}
	}
	refused := func(n int, id, to string, port int) string {
		return logLine(n, "refused", id, "action=reject", fmt.Sprintf("client=192.0.2.1:%d", port), "from=<x@spam.example>", "to=<"+to+">", "list=l", "entry=spam.example")
	}
	log := logLine(1, "accepted", id(1), "from=<x@spam.example>", "to=<a@example.net>") + // older than the history
		refused(2, id(2), "a@example.net", 25) + refused(2, id(2), "b@example.net", 25) + // one of them is in the history
		refused(3, id(3), "a@example.net", 25) + refused(4, id(4), "a@example.net", 26) + refused(5, id(5), "a@example.net", 27) + // one row
		refused(5, id(6), "b@example.net", 25) + refused(6, id(7), "a@example.net", 25) // not in that row
	for _, tt := range []struct {
		most    int
		want    []string
		omitted int
	}{
		{100, []string{id(1) + " 1", id(2) + " 2", id(3) + " 1", id(6) + " 1", id(7) + " 1"}, 0},
		{3, []string{id(3) + " 1", id(6) + " 1", id(7) + " 1"}, 2},
		{2, []string{id(6) + " 1", id(7) + " 1"}, 3},
	} {
		q := address(t, "x@spam.example")
		q.Most = tt.most
		s := NewSearch(q)
		s.Add(kept(2, 2, id(2), "a@example.net"), "")
		s.Add(kept(3, 5, id(3), "a@example.net"), "")
		if err := s.Read(t.Context(), strings.NewReader(log), nil); err != nil {
			t.Fatal(err)
		}
		r := s.Result()
		if got := found(r); !slices.Equal(got, tt.want) || r.Omitted != tt.omitted {
			t.Errorf("at most %d: %q and %d omitted; want %q, %d", tt.most, got, r.Omitted, tt.want, tt.omitted)
		}
		for _, m := range r.Messages {
			if fromHistory := slices.ContainsFunc(m.Records, (*Record).Kept); fromHistory != (m.ID == id(2) || m.ID == id(3)) {
				t.Errorf("%s: of the history: %t", m.ID, fromHistory)
			}
		}
	}
}

func TestFindID(t *testing.T) {
	for text, want := range map[string]string{
		"2ZFPDJSVUUAR": "2ZFPDJSVUUAR", " 2zfpdjsvuuar\n": "2ZFPDJSVUUAR", "550 5.7.1 <x@y> refused: list l; id 2ZFPDJSVUUAR": "2ZFPDJSVUUAR",
		"id=2ZFPDJSVUUAR from=<a@b>": "2ZFPDJSVUUAR", "2ZFPDJSVUUA": "", "2ZFPDJSVUUA1": "", "a@b.example": "", "": "",
	} {
		if got, ok := FindID(text); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %t", text, got, ok)
		}
	}
}
