package verdict

import (
	"log/slog"
	"time"
)

// MaxParties bounds the recipients and the header senders of a Decision.
const MaxParties = 1000

// Decision is an event about a message. A session or a door fills it once; the line of the log and
// the row of the history are made from it. It holds addresses as they may be shown. What is empty
// is left out, but for the numbers of which Judge and Sized say that they are known.
type Decision struct {
	Event string // the Text of an Event
	Level slog.Level
	Time  time.Time

	Kept bool // the history takes it

	ID            string
	Action        string
	Judge         Judge  // whose generation is shown; nil if nobody was asked
	Door          string // "" for the proxy
	Listener      string
	Client        string
	ForwardedFor  string
	Helo          string
	TLS           string
	Authenticated bool
	From          string // the reverse-path in brackets
	To            string // as many recipients as a line takes
	MessageID     string
	QueueID       string // at the mail server that asks

	// What the deciding finding says; see Finding and Match.
	Identity, Sender, ByWayOf, Form string
	List, Entry, EntryFor, Source   string
	Unconfirmed                     bool
	Reason, Note, Policy            string
	Proof, Unproven                 string

	Reply  string // the gate's own
	Server string // the next hop

	// What only some events have.
	Would       string // the action without the monitor mode
	Addresses   int
	Outcome     string
	NextHop     string // the next hop's reply
	Exempt      string // why a listed sender passed
	RefusedFor  string // recipients
	TaggedAhead string
	Size        int64 // of the message, if Sized
	Sized       bool
	Error       string

	Duration time.Duration // since the message began

	// For the history: the first MaxParties recipients without brackets, the number of the others,
	// and the first MaxParties header senders, each once, without the reverse-path.
	Recipients     []string
	MoreRecipients int
	HeaderSenders  []string
}

// AppendAttrs appends the attributes of the decision's line. Those of the message come first,
// always in the same order.
func (d *Decision) AppendAttrs(attrs []slog.Attr) []slog.Attr {
	var generation, authenticated, confirmed, addresses, size slog.Attr
	if d.Judge != nil {
		generation = slog.Uint64("generation", d.Judge.Generation())
	}
	if d.Authenticated {
		authenticated = slog.Bool("authenticated", true)
	}
	if d.Unconfirmed {
		confirmed = slog.Bool("confirmed", false)
	}
	if d.Addresses > 0 {
		addresses = slog.Int("addresses", d.Addresses)
	}
	if d.Sized {
		size = slog.Int64("size", d.Size)
	}
	text := slog.String
	for _, a := range [...]slog.Attr{
		text("id", d.ID), text("action", d.Action), generation, text("door", d.Door), text("listener", d.Listener),
		text("client", d.Client), text("forwarded_for", d.ForwardedFor), text("helo", d.Helo), text("tls", d.TLS), authenticated,
		text("from", d.From), text("to", d.To), text("message_id", d.MessageID), text("queue_id", d.QueueID),
		text("identity", d.Identity), text("sender", d.Sender), text("by_way_of", d.ByWayOf), text("form", d.Form),
		text("list", d.List), text("entry", d.Entry), text("entry_for", d.EntryFor), confirmed, text("source", d.Source),
		text("reason", d.Reason), text("note", d.Note), text("recipient_policy", d.Policy), text("proof", d.Proof), text("unproven", d.Unproven),
		text("reply", d.Reply), text("server", d.Server), text("would", d.Would), addresses, text("outcome", d.Outcome),
		text("next_hop", d.NextHop), text("exempt", d.Exempt), text("refused_for", d.RefusedFor), text("tagged_ahead", d.TaggedAhead),
		size, text("error", d.Error),
	} {
		if a.Key != "" && (a.Value.Kind() != slog.KindString || a.Value.String() != "") {
			attrs = append(attrs, a)
		}
	}
	return append(attrs, slog.String("duration", d.Duration.String()))
}
