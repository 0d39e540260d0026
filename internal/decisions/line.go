package decisions

import (
	"cmp"
	"fmt"
	"log/slog"
	"strings"

	"spamgate/blocklist/verdict"
)

// nullSender is the null sender in a Decision.
const nullSender = "<>"

// New returns the row of a decision. The client received the gate's reply, or else the next
// hop's, which is an attribute only if it says something else.
func New(v *verdict.Decision) *Decision {
	d := &Decision{
		ID: v.ID, Time: v.Time, Event: v.Event, Level: v.Level.String(), Count: 1, Last: v.Time,
		Door: v.Door, Listener: v.Listener, Client: v.Client, Helo: v.Helo, Sender: v.From,
		Recipients: v.Recipients, HeaderSenders: v.HeaderSenders, MoreRecipients: v.MoreRecipients,
		MessageID: v.MessageID, Action: v.Action, List: v.List, Entry: v.Entry, Reason: v.Reason,
		Reply: cmp.Or(v.Reply, v.NextHop), Size: v.Size, Duration: v.Duration,
	}
	if d.Sender != nullSender {
		d.Sender = strings.TrimSuffix(strings.TrimPrefix(d.Sender, "<"), ">")
	}
	for _, a := range v.AppendAttrs(make([]slog.Attr, 0, 24)) {
		switch a.Key {
		case "id", "door", "listener", "client", "helo", "from", "to", "message_id", "action", "list", "entry", "reason", "reply", "size", "duration":
			continue // a column
		case nextHop:
			if v.NextHop == d.Reply {
				continue
			}
		}
		d.Attrs = append(d.Attrs, Attr{a.Key, a.Value.String()})
	}
	return d
}

// nextHop is the attribute with the next hop's reply.
const nextHop = "next_hop"

// LogAttrs returns the attributes of the log line, with all recipients: first those that are columns.
func (d *Decision) LogAttrs() []Attr {
	v := verdict.Decision{
		ID: d.ID, Action: d.Action, Door: d.Door, Listener: d.Listener, Client: d.Client, Helo: d.Helo, From: d.Sender,
		MessageID: d.MessageID, List: d.List, Entry: d.Entry, Reason: d.Reason, Reply: d.Reply,
		Size: d.Size, Sized: d.Size > 0, Duration: d.Duration,
	}
	if v.From != "" && v.From != nullSender {
		v.From = "<" + v.From + ">"
	}
	if len(d.Recipients) > 0 {
		v.To = "<" + strings.Join(d.Recipients, ">,<") + ">"
		if d.MoreRecipients > 0 {
			v.To += fmt.Sprintf(" and %d more", d.MoreRecipients)
		}
	}
	if d.Attr(nextHop) == "" && (d.Event == verdict.EventAccepted || d.Event == "refused by the next hop") {
		v.Reply, v.NextHop = "", d.Reply // the client received it as it was
	}
	var attrs []Attr
	for _, a := range v.AppendAttrs(nil) {
		if a.Key == "duration" {
			attrs = append(attrs, d.Attrs...)
		}
		if a.Key != "duration" || d.Duration > 0 {
			attrs = append(attrs, Attr{a.Key, a.Value.String()})
		}
	}
	return attrs
}
