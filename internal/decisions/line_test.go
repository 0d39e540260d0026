package decisions

import (
	"context"
	"log/slog"
	"reflect"
	"slices"
	"testing"
	"time"

	"spamgate/blocklist/verdict"
)

// seventh is a Judge of generation 7.
type seventh struct{}

func (seventh) Generation() uint64 { return 7 }

func (seventh) Judge(context.Context, *verdict.Message, verdict.Query) (verdict.Verdict, error) {
	return verdict.Verdict{}, nil
}

func TestNew(t *testing.T) {
	now := time.Date(2026, 11, 22, 15, 39, 26, 839_000_000, time.UTC)
	for _, tt := range []struct {
		decided verdict.Decision
		want    Decision
		attrs   []Attr // of the log line again
	}{
		{
			verdict.Decision{Event: "refused", ID: "2ZFPDJSVUUAR", Action: "reject", Judge: seventh{}, Door: "milter", Listener: "beside",
				Client: "203.0.113.7:25", Helo: "h", Authenticated: true, From: "<x@spam.example>", To: "<a@example.net> and 1 more", MessageID: "<1@x>",
				Identity: "envelope", List: "blocked", Entry: "spam.example", Source: "b.txt:6", Reason: "bulk", Reply: "550 no", Duration: 208 * time.Microsecond,
				Recipients: []string{"a@example.net", "b@example.net"}},
			Decision{ID: "2ZFPDJSVUUAR", Event: "refused", Level: "INFO", Door: "milter", Listener: "beside",
				Client: "203.0.113.7:25", Helo: "h", Sender: "x@spam.example", Recipients: []string{"a@example.net", "b@example.net"},
				MessageID: "<1@x>", Action: "reject", List: "blocked", Entry: "spam.example", Reason: "bulk", Reply: "550 no", Duration: 208 * time.Microsecond,
				Attrs: []Attr{{"generation", "7"}, {"authenticated", "true"}, {"identity", "envelope"}, {"source", "b.txt:6"}}},
			[]Attr{{"id", "2ZFPDJSVUUAR"}, {"action", "reject"}, {"door", "milter"}, {"listener", "beside"}, {"client", "203.0.113.7:25"}, {"helo", "h"},
				{"from", "<x@spam.example>"}, {"to", "<a@example.net>,<b@example.net>"}, {"message_id", "<1@x>"}, {"list", "blocked"}, {"entry", "spam.example"},
				{"reason", "bulk"}, {"reply", "550 no"}, {"generation", "7"}, {"authenticated", "true"}, {"identity", "envelope"}, {"source", "b.txt:6"}, {"duration", "208µs"}},
		},
		{ // the next hop's reply is what the client received
			verdict.Decision{Event: "accepted", From: "<>", NextHop: "250 Ok", Size: 71, Sized: true},
			Decision{Event: "accepted", Level: "INFO", Sender: "<>", Reply: "250 Ok", Size: 71},
			[]Attr{{"from", "<>"}, {"next_hop", "250 Ok"}, {"size", "71"}},
		},
		{ // unless the gate has replied with something else
			verdict.Decision{Event: "refused by the next hop", Level: slog.LevelWarn, From: "<<x>>", Reply: "451 later", NextHop: "550 no"},
			Decision{Event: "refused by the next hop", Level: "WARN", Sender: "<x>", Reply: "451 later", Attrs: []Attr{{"next_hop", "550 no"}}},
			[]Attr{{"from", "<<x>>"}, {"reply", "451 later"}, {"next_hop", "550 no"}},
		},
	} {
		tt.decided.Time, tt.want.Time, tt.want.Last, tt.want.Count = now, now, now, 1
		got := New(&tt.decided)
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
