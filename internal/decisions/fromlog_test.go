package decisions

import (
	"log/slog"
	"reflect"
	"slices"
	"testing"
	"time"
)

// record returns a line of the log at a fixed time.
func record(level slog.Level, text string, attrs ...slog.Attr) slog.Record {
	r := slog.NewRecord(time.Date(2026, 11, 22, 15, 39, 26, 839_000_000, time.UTC), level, text, 0)
	r.AddAttrs(attrs...)
	return r
}

func TestFromLog(t *testing.T) {
	at := record(0, "").Time
	for _, tt := range []struct {
		record     slog.Record
		recipients []string
		want       Decision
		attrs      []Attr // of the log line again
	}{
		{
			record(slog.LevelInfo, "refused", slog.String("id", "2ZFPDJSVUUAR"), slog.String("action", "reject"), slog.Uint64("generation", 7),
				slog.String("door", "milter"), slog.String("listener", "beside"), slog.String("client", "203.0.113.7:25"), slog.String("helo", "h"),
				slog.Bool("authenticated", true), slog.String("from", "<x@spam.example>"), slog.String("to", "<a@example.net> and 1 more"),
				slog.String("message_id", "<1@x>"), slog.String("identity", "envelope"), slog.String("list", "blocked"), slog.String("entry", "spam.example"),
				slog.String("source", "b.txt:6"), slog.String("reason", "bulk"), slog.String("reply", "550 no"), slog.String("duration", "208µs")),
			[]string{"a@example.net", "b@example.net"},
			Decision{ID: "2ZFPDJSVUUAR", Time: at, Last: at, Event: "refused", Level: "INFO", Count: 1, Door: "milter", Listener: "beside",
				Client: "203.0.113.7:25", Helo: "h", Sender: "x@spam.example", Recipients: []string{"a@example.net", "b@example.net"},
				MessageID: "<1@x>", Action: "reject", List: "blocked", Entry: "spam.example", Reason: "bulk", Reply: "550 no", Duration: 208 * time.Microsecond,
				Attrs: []Attr{{"generation", "7"}, {"authenticated", "true"}, {"identity", "envelope"}, {"source", "b.txt:6"}}},
			[]Attr{{"id", "2ZFPDJSVUUAR"}, {"action", "reject"}, {"door", "milter"}, {"listener", "beside"}, {"client", "203.0.113.7:25"}, {"helo", "h"},
				{"from", "<x@spam.example>"}, {"to", "<a@example.net>,<b@example.net>"}, {"message_id", "<1@x>"}, {"list", "blocked"}, {"entry", "spam.example"},
				{"reason", "bulk"}, {"reply", "550 no"}, {"generation", "7"}, {"authenticated", "true"}, {"identity", "envelope"}, {"source", "b.txt:6"}, {"duration", "208µs"}},
		},
		{ // the next hop's reply is what the client received
			record(slog.LevelInfo, "accepted", slog.String("from", "<>"), slog.String("next_hop", "250 Ok"), slog.Int64("size", 71)), nil,
			Decision{Time: at, Last: at, Event: "accepted", Level: "INFO", Count: 1, Sender: "<>", Reply: "250 Ok", Size: 71, Attrs: []Attr{}},
			[]Attr{{"from", "<>"}, {"next_hop", "250 Ok"}, {"size", "71"}},
		},
		{ // unless the gate has replied with something else
			record(slog.LevelWarn, "refused by the next hop", slog.String("from", "<<x>>"), slog.String("reply", "451 later"), slog.String("next_hop", "550 no")), nil,
			Decision{Time: at, Last: at, Event: "refused by the next hop", Level: "WARN", Count: 1, Sender: "<x>", Reply: "451 later", Attrs: []Attr{{"next_hop", "550 no"}}},
			[]Attr{{"from", "<<x>>"}, {"reply", "451 later"}, {"next_hop", "550 no"}},
		},
	} {
		got := FromLog(tt.record, tt.recipients, nil)
		if !reflect.DeepEqual(*got, tt.want) {
			t.Errorf("got  %+v\nwant %+v", *got, tt.want)
		}
		if attrs := got.LogAttrs(); !slices.Equal(attrs, tt.attrs) {
			t.Errorf("got  %q\nwant %q", attrs, tt.attrs)
		}
	}
	d := Decision{Recipients: []string{"a@example.net"}, MoreRecipients: 5}
	if got, want := d.LogAttrs(), []Attr{{"to", "<a@example.net> and 5 more"}}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
