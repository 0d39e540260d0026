package decisions

import (
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"spamgate/blocklist/verdict"
)

// nullSender is the null sender in a Decision.
const nullSender = "<>"

// FromLog returns the decision of a line of the log, of which the line may have only some of the
// recipients. The line and the addresses show them as [log] addresses says.
func FromLog(r slog.Record, recipients, headerSenders []string) *Decision {
	d := &Decision{
		Time: r.Time, Last: r.Time, Event: r.Message, Level: r.Level.String(), Count: 1,
		Recipients: recipients, HeaderSenders: headerSenders,
	}
	r.Attrs(func(a slog.Attr) bool {
		d.add(a)
		return true
	})
	d.settleReply()
	return d
}

// add adds an attribute of the log line.
func (d *Decision) add(a slog.Attr) {
	if a.Key == "size" && a.Value.Kind() == slog.KindInt64 {
		d.Size = a.Value.Int64()
		return
	}
	value := a.Value.String()
	switch a.Key {
	case "to": // Recipients has all
	case "from":
		if d.Sender = value; value != nullSender {
			d.Sender = strings.TrimSuffix(strings.TrimPrefix(value, "<"), ">")
		}
	case "duration":
		d.Duration, _ = time.ParseDuration(value) // the gate wrote it
	default:
		if field := d.field(a.Key); field != nil {
			*field = value
		} else {
			d.Attrs = append(d.Attrs, Attr{a.Key, value})
		}
	}
}

// field returns the field for an attribute that is a text, or nil.
func (d *Decision) field(key string) *string {
	switch key {
	case "id":
		return &d.ID
	case "door":
		return &d.Door
	case "listener":
		return &d.Listener
	case "client":
		return &d.Client
	case "helo":
		return &d.Helo
	case "message_id":
		return &d.MessageID
	case "action":
		return &d.Action
	case "list":
		return &d.List
	case "entry":
		return &d.Entry
	case "reason":
		return &d.Reason
	case "reply":
		return &d.Reply
	}
	return nil
}

// nextHop is the attribute with the next hop's reply.
const nextHop = "next_hop"

// settleReply makes the next hop's reply the client's, if the gate has none of its own. The
// attribute remains only if it says something else.
func (d *Decision) settleReply() {
	i := slices.IndexFunc(d.Attrs, func(a Attr) bool { return a.Key == nextHop })
	if i < 0 {
		return
	}
	if d.Reply == "" {
		d.Reply = d.Attrs[i].Value
	}
	if d.Reply == d.Attrs[i].Value {
		d.Attrs = slices.Delete(d.Attrs, i, i+1)
	}
}

// fromNextHop reports whether the client received the next hop's reply as it was.
func (d *Decision) fromNextHop() bool {
	return d.Reply != "" && (d.Event == verdict.EventAccepted || d.Event == "refused by the next hop") &&
		!slices.ContainsFunc(d.Attrs, func(a Attr) bool { return a.Key == nextHop })
}

// LogAttrs returns the attributes of the log line, with all recipients.
func (d *Decision) LogAttrs() []Attr {
	var attrs []Attr
	add := func(key, value string) {
		if value != "" {
			attrs = append(attrs, Attr{key, value})
		}
	}
	add("id", d.ID)
	add("action", d.Action)
	add("door", d.Door)
	add("listener", d.Listener)
	add("client", d.Client)
	add("helo", d.Helo)
	switch d.Sender {
	case "", nullSender:
		add("from", d.Sender)
	default:
		add("from", "<"+d.Sender+">")
	}
	if len(d.Recipients) > 0 {
		to := "<" + strings.Join(d.Recipients, ">,<") + ">"
		if d.MoreRecipients > 0 {
			to += fmt.Sprintf(" and %d more", d.MoreRecipients)
		}
		add("to", to)
	}
	add("message_id", d.MessageID)
	add("list", d.List)
	add("entry", d.Entry)
	add("reason", d.Reason)
	if d.fromNextHop() {
		add(nextHop, d.Reply)
	} else {
		add("reply", d.Reply)
	}
	if d.Size > 0 {
		add("size", strconv.FormatInt(d.Size, 10))
	}
	attrs = append(attrs, d.Attrs...)
	if d.Duration > 0 {
		add("duration", d.Duration.String())
	}
	return attrs
}
