package decisions

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"spamgate/blocklist/verdict"
	"spamgate/internal/config"
	history "spamgate/internal/decisions"
	"spamgate/internal/mailwhy"
	"spamgate/internal/term"
)

// print prints the answer for people.
func (a *answer) print(w io.Writer) {
	if a.more {
		fmt.Fprint(w, "There are more messages before these: see --last and --since\n\n")
	}
	for _, m := range slices.Backward(a.messages) {
		m.print(w)
		fmt.Fprintln(w)
	}
	if len(a.messages) == 0 {
		a.printNothing(w)
		return
	}
	if a.domainsOnly() {
		term.PrintWrapped(w, "", domainsOnly(a.asked))
	}
	a.printSearched(w, reaches(a.page.Reach))
	if a.notNow != "" || len(a.presents) > 0 {
		fmt.Fprintln(w)
	}
	a.printNow(w)
}

// printSearched says how far back the history reaches, and which gates of the fleet have answered,
// if it was asked.
func (a *answer) printSearched(w io.Writer, reach string) {
	if a.page.Fault != "" {
		reach += " " + missesNewest(a.page.Fault)
	}
	term.PrintWrapped(w, "", reach)
	if text := a.page.Answered(); text != "" {
		term.PrintWrapped(w, "", text)
	}
}

// dnsNotKept says where to look if the gate answers over DNS only.
const dnsNotKept = "This gate has DNS servers only, which keep no questions: spamgate check ADDRESS says what they answer, " +
	"and the metric spamgate_dns_questions_total counts the questions."

// printNothing says how far back the history reaches, and how to make it longer.
func (a *answer) printNothing(w io.Writer) {
	what := "the address " + a.asked
	if a.query.ID != "" {
		what = "the id " + a.query.ID
	}
	if !a.query.Since.IsZero() {
		what += " since " + a.query.Since.Local().Format(time.DateTime)
	}
	text := "Nothing about " + what + ": the history here is empty."
	if back := a.page.Reach; back != nil {
		c := a.config.Decisions
		text = fmt.Sprintf(`Nothing about %s: the history here reaches back to %s; a longer [decisions] keep, or a larger max_bytes, makes it longer.`,
			what, back.Local().Format(time.DateTime))
		if a.query.ID != "" {
			text += " Of equal refusals within a minute the first ten have their ids here, and the log has all."
		}
		if c.Record != config.RecordAll {
			text += ` Accepted messages of senders on no list are in the log only; record = "all" keeps them here.`
		}
	}
	a.printSearched(w, text)
	if a.config.OnlyDNS() {
		term.PrintWrapped(w, "", dnsNotKept)
	}
}

func (a *answer) printNow(w io.Writer) {
	if a.notNow != "" {
		term.PrintWrapped(w, "What would happen now is not known: ", a.notNow)
		return
	}
	if len(a.presents) > 0 {
		fmt.Fprintln(w, "Now, as spamgate check says:")
	}
	for _, p := range a.presents {
		if p.Error != "" {
			term.PrintWrapped(w, "  "+p.address+": ", p.Error)
			continue
		}
		for line := range strings.Lines(p.text) {
			fmt.Fprint(w, "  ", line)
		}
	}
}

func (m *message) print(w io.Writer) {
	fmt.Fprintf(w, "%s  %s  %s\n", mailwhy.Printable(m.id), m.decisions[0].Time.Local().Format(time.DateTime), m.outcome())
	for _, line := range m.head() {
		term.PrintWrapped(w, fmt.Sprintf("  %-10s ", line[0]), line[1])
	}
	for i := range m.decisions {
		d := &m.decisions[i]
		term.PrintWrapped(w, "  "+d.Time.Local().Format(time.TimeOnly)+"   ", mailwhy.Explain(d))
	}
	if m.more {
		fmt.Fprintln(w, "  and more decisions: see spamgate decisions find --id", mailwhy.Printable(m.id))
	}
}

// outcome returns what became of a message, in a word or two, or in several if it differs from
// recipient to recipient.
func (m *message) outcome() string {
	var all []string
	for _, d := range m.decisions {
		event := mailwhy.Printable(d.Event)
		if d.Event != verdict.EventMonitored && !verdict.EventOf(d.Event).Note && !slices.Contains(all, event) {
			all = append(all, event)
		}
	}
	if all == nil {
		return "no outcome in the history"
	}
	return strings.Join(all, ", ")
}

// doors are the doors beside the listeners, for people.
var doors = map[string]string{"policy_service": "policy service", "milter": "milter"}

// head describes the envelope and the client, a line each: the label and the text.
func (m *message) head() (lines [][2]string) {
	last := func(get func(*history.Decision) string) string {
		for i := len(m.decisions) - 1; i >= 0; i-- {
			if v := get(&m.decisions[i]); v != "" {
				return v
			}
		}
		return ""
	}
	add := func(label, text string) {
		if text != "" {
			lines = append(lines, [2]string{label, mailwhy.Printable(text)})
		}
	}
	add("gate", m.gate)
	if from := last(func(d *history.Decision) string { return d.Sender }); from != "" {
		add("from", angle(from))
	}
	add("to", m.recipients())
	client := last(func(d *history.Decision) string { return d.Client })
	helo := last(func(d *history.Decision) string { return d.Helo })
	loggedIn := last(func(d *history.Decision) string { return d.Attr("authenticated") }) != ""
	if client == "" && (helo != "" || loggedIn) {
		client = "not known" // to the mail server that has asked
	}
	if helo != "" {
		client += ", which calls itself " + helo
	}
	if tls := last(func(d *history.Decision) string { return d.Attr("tls") }); tls != "" && tls != "none" {
		client += ", " + tls
	}
	if loggedIn {
		client += ", logged in"
	}
	add("client", client)
	listener := last(func(d *history.Decision) string { return d.Listener })
	if kind, ok := doors[last(func(d *history.Decision) string { return d.Door })]; ok {
		add("asked by", listener+" ("+kind+")")
	} else {
		add("listener", listener)
	}
	add("Message-ID", last(func(d *history.Decision) string { return d.MessageID }))
	return lines
}

// recipients returns the recipients in all decisions, each once.
func (m *message) recipients() string {
	var all []string
	seen := map[string]bool{}
	for _, d := range m.decisions {
		for _, to := range d.Recipients {
			if !seen[to] {
				seen[to] = true
				all = append(all, angle(to))
			}
		}
	}
	const most = 20
	if n := len(all) - most; n > 0 {
		return strings.Join(all[:most], ", ") + " and " + strconv.Itoa(n) + " more"
	}
	return strings.Join(all, ", ")
}

// The answer for programs.
type (
	answerJSON struct {
		Query    string        `json:"query"`
		Messages []messageJSON `json:"messages"`       // the oldest first
		More     bool          `json:"more,omitempty"` // there are older ones
		Searched searchedJSON  `json:"searched"`
		Now      []present     `json:"now,omitempty"`
		NotNow   string        `json:"now_unknown,omitempty"`
	}
	messageJSON struct {
		ID      string      `json:"id,omitempty"`
		Gate    string      `json:"gate,omitempty"` // of the fleet, if that was asked
		Outcome string      `json:"outcome"`
		Whole   bool        `json:"certain"` // false: the history has only the domain of addresses
		Events  []eventJSON `json:"events"`
		More    bool        `json:"more_events,omitempty"`
	}
	eventJSON struct {
		Time       time.Time         `json:"time"`
		Level      string            `json:"level"`
		Event      string            `json:"event"`
		Text       string            `json:"text"`
		Attributes map[string]string `json:"attributes"`
	}
	searchedJSON struct {
		History historyJSON `json:"history"`
	}
	historyJSON struct {
		Reach *time.Time `json:"reaches_back_to,omitempty"` // nil: it is empty
		Fault string     `json:"stands_still,omitempty"`

		// Of the fleet, if it was asked.
		Gates      []string          `json:"gates,omitempty"`
		Missing    []string          `json:"missing,omitempty"`
		Errors     map[string]string `json:"errors,omitempty"`
		FleetError string            `json:"fleet_error,omitempty"`
	}
)

func (a *answer) forPrograms() answerJSON {
	p := &a.page
	out := answerJSON{
		Query: a.asked, Messages: []messageJSON{}, More: a.more, Now: a.presents, NotNow: a.notNow,
		Searched: searchedJSON{historyJSON{p.Reach, p.Fault, p.Gates, p.Missing, p.Errors, p.FleetError}},
	}
	for _, m := range slices.Backward(a.messages) {
		message := messageJSON{ID: m.id, Gate: m.gate, Outcome: m.outcome(), Whole: !a.domainsOnly(), More: m.more}
		for i := range m.decisions {
			d := &m.decisions[i]
			attributes := map[string]string{}
			for _, attr := range d.LogAttrs() {
				attributes[attr.Key] = attr.Value
			}
			message.Events = append(message.Events, eventJSON{d.Time, d.Level, d.Event, mailwhy.Explain(d), attributes})
		}
		out.Messages = append(out.Messages, message)
	}
	return out
}
