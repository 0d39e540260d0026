package console

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
	"time"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/internal/accounts"
	"spamgate/internal/decisions"
	"spamgate/internal/fleetsearch"
	"spamgate/internal/logging"
)

// shownRecipients is how many recipients a row shows.
const shownRecipients = 3

// mailRow is a decision as a row of a table.
type mailRow struct {
	fleetsearch.Decision
	Path    string // of the message
	Outcome outcome
	When    string   // short
	To      []string // the first recipients
	More    int      // the number of the others
	Why     string   // in words, if no list says it
	LetIn   string   // the path of the form that lets the sender in; "" if it is not offered
}

// outcome is what became of a message in a word or two, with the class of its badge.
type outcome struct{ Class, Text string }

// outcomeOf returns what became of a message. A refusal with a reply of 4xx is a deferral.
func outcomeOf(d *decisions.Decision) outcome {
	e := verdict.EventOf(d.Event)
	o := outcome{e.Class, e.Words}
	switch {
	case e.Class != "":
	case isAction(d.Action):
		o = outcome{d.Action, verdict.ActionOf(d.Action).Done()}
	default:
		o = outcome{"monitor", cmp.Or(d.Action, d.Event)}
	}
	if o.Class == "reject" && strings.HasPrefix(d.Reply, "4") {
		o.Class = "defer"
		o.Text = strings.Replace(o.Text, "refused", "deferred", 1)
	}
	return o
}

// isAction reports whether the text is the name of an action; a later version may have others.
func isAction(text string) bool { return slices.Contains(verdict.Actions(), text) }

// mailRows makes rows of decisions.
func (x *exchange) mailRows(all []fleetsearch.Decision) []mailRow {
	now := x.console.Now()
	rows := make([]mailRow, len(all))
	for i, d := range all {
		r := mailRow{
			Decision: d, Path: messagePath(d.ID, d.Gate), Outcome: outcomeOf(&d.Decision), When: shortTime(d.Time, now),
			LetIn: x.letInPath(&d.Decision, d.Gate),
		}
		r.To = d.Recipients[:min(shownRecipients, len(d.Recipients))]
		r.More = len(d.Recipients) - len(r.To) + d.MoreRecipients
		if !isAction(d.Action) || d.Event != "accepted" && d.Event != "refused" && d.Event != "discarded" {
			r.Why = d.Event
		}
		rows[i] = r
	}
	return rows
}

// Key tells a row from others: the live view replaces one whose count has grown.
func (r *mailRow) Key() string {
	sum := sha256.Sum256([]byte(r.Gate + "\x00" + r.ID + "\x00" + r.Time.Format(time.RFC3339Nano) + "\x00" + r.Event + "\x00" + r.Entry + "\x00" + strings.Join(r.Recipients, "\x00")))
	return "row-" + hex.EncodeToString(sum[:8])
}

// judged returns the sender that a decision is about: the one in the header, if that decided.
// A forwarded sender is judged by way of the forwarder's address.
func judged(d *decisions.Decision) string {
	if s := cmp.Or(d.Attr("by_way_of"), d.Attr("sender")); s != "" {
		return strings.TrimSuffix(strings.TrimPrefix(s, "<"), ">")
	}
	return d.Sender
}

// letInPath returns the path of the form that lets the sender of a decision in. It is "" if that
// would not help, since no list stopped or marked the message, or if it is not offered.
func (x *exchange) letInPath(d *decisions.Decision, gate string) string {
	if a := verdict.ActionOf(d.Action); a == verdict.Accept || a == verdict.Monitor || d.List == "" {
		return ""
	}
	return x.entryPath("allow", d, gate)
}

// entryPath returns the path of the form for a new entry about the sender of a decision that a gate
// made. It is "" if the account may add none, or if the history does not show the address.
func (x *exchange) entryPath(kind string, d *decisions.Decision, gate string) string {
	may := accounts.LetIn
	if kind == "block" {
		may = accounts.Block
	}
	if !x.who.MaySome(may) || x.console.Config().Log.Addresses != logging.AddressesFull {
		return ""
	}
	from := judged(d)
	if a, err := sender.Parse(from); err != nil || a.Domain() == "" || logging.Hidden(from) {
		return ""
	}
	v := url.Values{"type": {kind}, "sender": {from}, "id": {d.ID}}
	if len(d.Recipients) == 1 && d.MoreRecipients == 0 {
		v.Set("recipient", d.Recipients[0])
	}
	if gate != "" {
		v.Set("gate", gate)
	}
	if kind == "allow" {
		v.Set("show", "1")
	}
	return "/entry/new?" + v.Encode()
}
