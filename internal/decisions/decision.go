// Package decisions keeps the history of decisions: what the gate did with which message,
// and why. The mail path never waits for it, and its loss is never the loss of mail.
package decisions

import "time"

// Decision is one decision about a message, as its log line tells it. A message may have
// several: one for each refused recipient, and one for each entry that only monitors.
//
// Addresses are shown as [log] addresses says: whole, as "*@domain", or hashed.
type Decision struct {
	ID    string    `json:"id"`   // of the message; the client's reply has it
	Time  time.Time `json:"time"` // of the decision
	Event string    `json:"event"`
	Level string    `json:"level"` // "INFO", "WARN", "ERROR"

	// Count is 1, or the number of equal refusals of a flood, of which this is the first.
	// Last is the time of the last one.
	Count int       `json:"count"`
	Last  time.Time `json:"last"`

	Door     string `json:"door,omitempty"` // "" for a listener
	Listener string `json:"listener,omitempty"`
	Client   string `json:"client,omitempty"` // address and port
	Helo     string `json:"helo,omitempty"`

	Sender        string   `json:"sender"` // the reverse-path without "<" and ">"; "<>" for the null sender
	Recipients    []string `json:"recipients,omitempty"`
	HeaderSenders []string `json:"header_senders,omitempty"` // each once, without the reverse-path

	// MoreRecipients and MoreHeaderSenders count those that a row has no place for.
	MoreRecipients    int `json:"more_recipients,omitempty"`
	MoreHeaderSenders int `json:"more_header_senders,omitempty"`

	MessageID string `json:"message_id,omitempty"`

	Action string `json:"action"` // "accept", "reject", "defer", "discard", "tag", "monitor"
	List   string `json:"list,omitempty"`
	Entry  string `json:"entry,omitempty"`
	Reason string `json:"reason,omitempty"`
	Reply  string `json:"reply,omitempty"` // what the client received: the gate's words, or else the next hop's

	Size     int64         `json:"size,omitempty"`        // in bytes, if the message arrived
	Duration time.Duration `json:"duration_ns,omitempty"` // since the message began

	// Attrs are the other attributes of the log line, in its order.
	Attrs []Attr `json:"attrs,omitempty"`
}

// Attr is an attribute of a log line.
type Attr struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Attr returns the value of one of the other attributes, or "".
func (d *Decision) Attr(key string) string {
	for _, a := range d.Attrs {
		if a.Key == key {
			return a.Value
		}
	}
	return ""
}

// Query says which decisions are wanted. Empty fields match all.
type Query struct {
	ID        string // of the message
	Address   string // a sender or a recipient, as the history shows it
	Sender    string // the reverse-path or a sender in the header, as the history shows it
	Recipient string // as the history shows it
	Domain    string // of a sender: the domain itself or one below it
	List      string
	Action    string
	Client    string // an IP address

	Since, Until time.Time // zero: no bound. Until itself is excluded

	// RecipientDomains, if not nil, restricts the answer to decisions about a recipient at
	// one of these domains, and shows no other recipients.
	RecipientDomains []string

	Limit  int    // 0: 100; at most 1,000
	Before Cursor // decisions before this one; "" for the newest
}

// Cursor is a place in the history.
type Cursor string

// Page is an answer to a Query: the newest decisions first.
type Page struct {
	Decisions []Decision `json:"decisions"`

	// Places are where the decisions are: a Query that begins Before one of them has its
	// decision, and the older ones.
	Places []Cursor `json:"-"`

	// Next continues after the last one; "" if there are no more.
	Next Cursor `json:"next,omitempty"`

	// Incomplete says that the time for the search was over before the page was full: Next
	// continues it.
	Incomplete bool `json:"incomplete,omitempty"`

	// Reach is the time of the oldest decision in the history; nil if that is empty.
	Reach *time.Time `json:"reaches_back_to,omitempty"`

	// Fault says why the history stands still, if the running gate was asked: the newest decisions
	// are not in it.
	Fault string `json:"stands_still,omitempty"`
}

// Ranked is a sender, domain, list or client with the number of its decisions.
type Ranked struct {
	Name  string    `json:"name"`
	Count int64     `json:"count"`
	Last  time.Time `json:"last"`
}

// Total counts the decisions of a span of time that are alike. Unlike the history, totals have
// every decision, also plain accepts.
type Total struct {
	Start  time.Time `json:"start"`
	Action string    `json:"action"`
	List   string    `json:"list,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Count  int64     `json:"count"`
}
