package console

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"spamgate/internal/check"
	"spamgate/internal/config"
	"spamgate/internal/decisions"
	"spamgate/internal/fleetsearch"
	"spamgate/internal/mailwhy"
	"spamgate/internal/term"
)

// Bounds of a story.
const (
	maxEvents     = 200
	maxNow        = 5  // senders of whom it says what would happen now
	maxRecipients = 20 // for whom it says so
)

// storyPage is what the page of one message shows.
type storyPage struct {
	ID     string
	Gate   string            // that had the message, in a fleet; "" for this gate without one
	Other  bool              // it is another gate
	Asked  *fleetsearch.Page // nil: the fleet was not asked
	Done   *notice
	Reach  *time.Time
	Record string
	Off    bool
	Bound  bool

	Outcome outcome // of the last decision that tells one
	Last    decisions.Decision
	Facts   []fact
	Events  []storyEvent
	More    bool // there are more decisions than are shown

	LetIn, Block string // paths; "" if not offered
	Search       string // the path of a search for more mail of the sender

	Now    []presentVerdict
	NotNow string // why it is not known what would happen now
	DNS    string // the path of this page with lists in DNS asked
}

// fact is something about the message that its decisions tell.
type fact struct {
	Name   string
	Values []string
	Link   string // a path; "" for none
}

// storyEvent is a decision in words.
type storyEvent struct {
	decisions.Decision
	Outcome outcome
	Text    string
}

// presentVerdict is what would happen now to a sender of the message.
type presentVerdict struct {
	Address string
	Outcome outcome
	Text    string // as "spamgate check" prints it
	Trace   string // as "spamgate check --trace" prints it
	Problem string
}

func (x *exchange) story() error {
	p := storyPage{
		ID: strings.ToUpper(x.r.PathValue("id")), Record: x.console.Config().Decisions.Record,
		Off: x.historyOff(x.query("gate")), Bound: x.who.Domains != nil,
	}
	var all []decisions.Decision
	if !p.Off && messageID.MatchString(p.ID) {
		var err error
		if all, err = x.findStory(&p); err != nil {
			return err
		}
	}
	if len(all) == 0 {
		x.status = http.StatusNotFound
		return x.render("story", view{Title: "No message " + p.ID, Nav: "/mail", Data: p})
	}
	slices.Reverse(all)
	p.tell(all)
	if err := x.offer(&p, all); err != nil {
		return err
	}
	x.askNow(&p, all)
	return x.render("story", view{Title: "Message " + p.ID, Nav: "/mail", Data: p})
}

// findStory returns the decisions about a message, the newest first: of the gate that the URL names,
// else of this one, and if that has none of another one of its fleet.
func (x *exchange) findStory(p *storyPage) ([]decisions.Decision, error) {
	gate := x.query("gate")
	if gate != "" && !fleetsearch.ValidName(gate) {
		return nil, invalid("The field gate is not the name of a gate.")
	}
	found, err := x.findMessage(x.r.Context(), p.ID, gate, maxEvents)
	if err != nil {
		return nil, err
	}
	p.Reach, p.Asked, p.More = found.Reach, asked(&found), found.Next != ""
	if x.console.inFleet() {
		p.Gate = x.console.gateName()
	}
	if len(found.Decisions) > 0 && found.Decisions[0].Gate != "" {
		p.Gate = found.Decisions[0].Gate
		p.Other = p.Gate != x.console.gateName()
	}
	return ofOneGate(found.Decisions), nil
}

// findMessage searches for the decisions about a message that the account may see: in the history
// of a gate, or if none is named in that of this gate, and then in those of its fleet.
func (x *exchange) findMessage(ctx context.Context, id, gate string, most int) (fleetsearch.Page, error) {
	q := decisions.Query{ID: id, RecipientDomains: x.who.Domains, Limit: most}
	if x.console.keepsHistory() && (x.isHere(gate) || !x.console.inFleet()) {
		page, err := x.console.History.Find(ctx, q)
		if err != nil || len(page.Decisions) > 0 || gate != "" || !x.console.inFleet() {
			return fleetsearch.Alone(page), err
		}
	}
	return x.findFleet(ctx, q, gate)
}

// ofOneGate returns the decisions of the gate that has the newest one: an id is that of one message
// on one gate.
func ofOneGate(all []fleetsearch.Decision) (found []decisions.Decision) {
	for _, d := range all {
		if d.Gate == all[0].Gate {
			found = append(found, d.Decision)
		}
	}
	return found
}

// tell fills in what the decisions say, the oldest first.
func (p *storyPage) tell(all []decisions.Decision) {
	p.Last = all[len(all)-1]
	for _, d := range all {
		e := storyEvent{Decision: d, Outcome: outcomeOf(&d), Text: mailwhy.Explain(&d)}
		p.Events = append(p.Events, e)
		if p.Outcome.Text == "" || e.Outcome.Class != "monitor" {
			p.Outcome, p.Last = e.Outcome, d
		}
	}
	p.Facts = facts(all)
}

// facts returns what the decisions about a message know of it.
func facts(all []decisions.Decision) (known []fact) {
	add := func(name, link string, get func(*decisions.Decision) []string) {
		var values []string
		for i := range all {
			for _, v := range get(&all[i]) {
				if v != "" && !slices.Contains(values, v) && len(values) < maxEvents {
					values = append(values, v)
				}
			}
		}
		if len(values) == 0 {
			return
		}
		if link != "" {
			link = mailPath("/mail", url.Values{link: {values[0]}})
		}
		known = append(known, fact{name, values, link})
	}
	single := func(get func(*decisions.Decision) string) func(*decisions.Decision) []string {
		return func(d *decisions.Decision) []string { return []string{get(d)} }
	}
	other := func(key string) func(*decisions.Decision) []string {
		return single(func(d *decisions.Decision) string { return d.Attr(key) })
	}
	add("Sender", "sender", single(func(d *decisions.Decision) string { return d.Sender }))
	add("In the header", "", func(d *decisions.Decision) []string { return d.HeaderSenders })
	add("Recipients", "", func(d *decisions.Decision) []string { return d.Recipients })
	add("Client", "client", single(func(d *decisions.Decision) string { return clientIP(d.Client) }))
	add("Calls itself", "", single(func(d *decisions.Decision) string { return d.Helo }))
	add("Forwarded for", "", other("forwarded_for"))
	add("TLS", "", other("tls"))
	add("Logged in", "", single(func(d *decisions.Decision) string {
		if d.Attr("authenticated") != "" {
			return "yes"
		}
		return ""
	}))
	add("Came in by", "", single(cameBy))
	add("Queue id there", "", other("queue_id"))
	add("Message-ID", "", single(func(d *decisions.Decision) string { return d.MessageID }))
	add("Size", "", single(func(d *decisions.Decision) string { return size(d.Size) }))
	add("Took", "", single(func(d *decisions.Decision) string { return took(d.Duration) }))
	add("Next hop", "", other("server"))
	add("Reply to the client", "", single(func(d *decisions.Decision) string { return cmp.Or(d.Reply, d.Attr("next_hop")) }))
	return known
}

// doorNames are the doors beside the listeners, for people.
var doorNames = map[string]string{"policy_service": "policy service", "milter": "milter"}

// Passes reports whether the lists would let all senders of the message in now.
func (p storyPage) Passes() bool {
	return len(p.Now) > 0 && !slices.ContainsFunc(p.Now, func(v presentVerdict) bool { return v.Outcome.Class != "accept" })
}

// cameBy names the listener or door.
func cameBy(d *decisions.Decision) string {
	kind := cmp.Or(doorNames[d.Door], d.Door, "listener")
	if d.Listener == "" {
		return kind
	}
	return kind + " " + d.Listener
}

// clientIP returns the IP address of a client with its port.
func clientIP(client string) string {
	if a, err := netip.ParseAddrPort(client); err == nil {
		return a.Addr().Unmap().String()
	}
	return client
}

// offer fills in what the account can do about the message.
func (x *exchange) offer(p *storyPage, all []decisions.Decision) (err error) {
	last := p.Last
	last.Recipients = nil
	for _, d := range all { // the recipients of the whole message
		for _, to := range d.Recipients {
			if !slices.Contains(last.Recipients, to) {
				last.Recipients = append(last.Recipients, to)
			}
		}
	}
	p.LetIn = x.letInPath(&last, p.Gate)
	p.Block = x.entryPath("block", &last, p.Gate)
	p.Search = mailPath("/mail", url.Values{"q": {judged(&p.Last)}})
	p.Done, err = x.notice()
	return err
}

// askNow fills in what would happen now to the message's senders.
func (x *exchange) askNow(p *storyPage, all []decisions.Decision) {
	if x.console.Check == nil {
		return
	}
	dns := x.query("dns") != ""
	if !dns && x.asksOthers() {
		v := url.Values{"dns": {"1"}}
		if p.Other {
			v.Set("gate", p.Gate)
		}
		p.DNS = mailPath("/mail/"+p.ID, v) + "#now"
	}
	for _, q := range check.PastQuestions(all, maxNow, maxRecipients) {
		q.Offline, q.Past = !dns, true
		p.Now = append(p.Now, x.present(q))
	}
	if len(p.Now) == 0 {
		p.NotNow = "The history does not show the sender’s address. If you know it, try it."
	}
}

// asksOthers reports whether a decision may take a question to the DNS.
func (x *exchange) asksOthers() bool {
	return slices.ContainsFunc(x.console.Config().Lists, func(l config.List) bool { return l.DNSZone != "" || len(l.ProvenBy) > 0 })
}

// present returns what would happen now to a sender.
func (x *exchange) present(q check.Question) presentVerdict {
	v := presentVerdict{Address: q.Address}
	answer, err := x.console.Check.Address(x.r.Context(), q)
	if err == nil {
		v.Outcome, v.Text = outcome{answer.Action.String(), answer.Action.Done()}, printed(answer)
		q.Trace = true
		answer, err = x.console.Check.Address(x.r.Context(), q)
	}
	if err != nil {
		v.Problem = err.Error()
		return v
	}
	v.Trace = printed(answer)
	return v
}

// size writes a size that is known.
func size(n int64) string {
	if n <= 0 {
		return ""
	}
	return term.ByteSize(n)
}

// beforeUnit matches the last number and unit of a duration.
var beforeUnit = regexp.MustCompile(`^([\d.]+)(\D+)$`)

// took writes a duration that is known, to three digits.
func took(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	unit := time.Nanosecond
	for unit*1000 <= d {
		unit *= 10
	}
	return beforeUnit.ReplaceAllString(d.Round(unit).String(), "$1 $2")
}
