package mailwhy

import (
	"log/slog"
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
