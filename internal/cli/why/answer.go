package why

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/internal/check"
	"spamgate/internal/cli/local"
	"spamgate/internal/config"
	"spamgate/internal/mailwhy"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

// answer is what the command says.
type answer struct {
	asked   string
	query   mailwhy.Query
	logs    []string
	onlyDNS bool // the gate answers over DNS only
	kept    kept // what the history has
	result  mailwhy.Result

	now    []present
	notNow string // why it is not known what would happen now
}

// present is what would happen now to a sender.
type present struct {
	Listener string `json:"listener,omitempty"`
	Result   any    `json:"result,omitempty"` // as check --json prints it
	Error    string `json:"error,omitempty"`

	check.Question `json:"-"`
	text           string // as check prints it
}

// mostNow bounds the senders of whom the command says what would happen now.
const mostNow = 10

// mostRecipients bounds the recipients for whom it says so.
const mostRecipients = 20

// askNow asks the lists on disk about the senders of the messages, the newest first.
func (a *answer) askNow(ctx context.Context, c *config.Config, stderr io.Writer) {
	senders := a.senders()
	switch {
	case len(a.result.Messages) == 0:
		return
	case len(senders) == 0:
		a.notNow = a.noSender()
		return
	case c == nil:
		a.notNow = "there is no configuration here: name it with --config"
		return
	}
	lists, err := openEngine(ctx, c, stderr)
	if err != nil {
		a.notNow = err.Error()
		return
	}
	for _, p := range senders[:min(mostNow, len(senders))] {
		said, err := lists.Address(ctx, p.Question)
		if err != nil {
			p.Error = err.Error()
		} else {
			var text strings.Builder
			said.Print(&text)
			p.Result, p.text = said.JSON, text.String()
		}
		a.now = append(a.now, p)
	}
}

// openEngine returns what says what would happen now, by the lists on disk.
func openEngine(ctx context.Context, c *config.Config, stderr io.Writer) (*check.Engine, error) {
	set, err := local.ReadLists(ctx, c, stderr)
	if err != nil {
		return nil, err
	}
	o, err := check.OnDisk(ctx, c, set, false)
	return check.New(o), err
}

// noSender says why there is no sender to ask about.
func (a *answer) noSender() string {
	for _, m := range a.result.Messages {
		for _, r := range m.Records {
			if mailwhy.NotAddress(r) != "" {
				return r.Get("from") + " is not an address, so no list can be asked about it"
			}
		}
	}
	return "the log does not show the sender's address: spamgate check ADDRESS says it, if you know the address"
}

// senders returns the senders of the messages, each once for a listener, with the recipients
// of the lines that are about it.
func (a *answer) senders() (all []present) {
	for i := len(a.result.Messages) - 1; i >= 0; i-- {
		m := a.result.Messages[i]
		if !m.Whole {
			continue // the log has a domain only
		}
		for _, r := range m.Records {
			// The sender within an address is judged by way of it.
			inHeader := r.Get("identity") != verdict.EnvelopeIdentity
			all = add(all, r, r.Get("from"), false)
			all = add(all, r, cmp.Or(r.Get("by_way_of"), r.Get("sender")), inHeader)
			if a.query.Text != "" && m.Roles&mailwhy.Sender != 0 {
				all = add(all, r, a.query.Text, false) // the log may have its hash
			}
		}
	}
	return all
}

// add adds what would happen now to a sender in a record. One that the envelope has is judged
// there and in the header.
func add(all []present, r *mailwhy.Record, address string, inHeader bool) []present {
	if address != "<>" {
		parsed, err := sender.Parse(strings.Trim(address, "<>"))
		if err != nil || parsed.Domain() == "" || strings.HasPrefix(address, "<*@") || strings.HasPrefix(address, "*@") {
			return all
		}
		address = parsed.String()
	}
	listener := r.Get("listener")
	i := slices.IndexFunc(all, func(p present) bool { return p.Question.Listener == listener && p.Address == address })
	if i < 0 {
		i = len(all)
		all = append(all, present{Listener: listener, Question: check.Question{Listener: listener, Address: address, InHeader: inHeader, Past: true}})
	}
	p := &all[i]
	p.InHeader = p.InHeader && inHeader
	for _, to := range mailwhy.Recipients(r) {
		if len(p.Recipients) < mostRecipients && !slices.Contains(p.Recipients, to) {
			p.Recipients = append(p.Recipients, to)
		}
	}
	return all
}

const clock = "2006-01-02 15:04:05"

// print prints the answer for people.
func (a *answer) print(w io.Writer) {
	switch n := a.result.Omitted; {
	case a.kept.more:
		fmt.Fprint(w, "There are more messages before these: see --last and --since\n\n")
	case n > 0:
		fmt.Fprintf(w, "%s before these: see --last and --since\n\n", text.Count(n, "more message", "more messages"))
	}
	for _, m := range a.result.Messages {
		printMessage(w, m)
		fmt.Fprintln(w)
	}
	if len(a.result.Messages) == 0 {
		a.printNothing(w)
	} else {
		term.PrintWrapped(w, "", "Searched: "+a.searched()+".")
		a.printFleet(w)
		if a.notNow != "" || len(a.now) > 0 {
			fmt.Fprintln(w)
		}
	}
	if n := a.result.Dropped; n > 0 {
		term.PrintWrapped(w, "", fmt.Sprintf("The gate dropped %s of this log, since its output was too slow: something may be missing.", text.Count(n, "line", "lines")))
	}
	if n := a.result.Skipped; n > 0 {
		term.PrintWrapped(w, "", fmt.Sprintf("%s longer than 1 MiB did not count.", text.Count(n, "line", "lines")))
	}
	a.printNow(w)
}

func printMessage(w io.Writer, m *mailwhy.Message) {
	id := m.ID
	if id == "" {
		id = "(no message yet)"
	}
	fmt.Fprintf(w, "%s  %s  %s\n", id, m.Records[0].Time.Local().Format(clock), m.Outcome())
	for _, line := range m.Head() {
		term.PrintWrapped(w, fmt.Sprintf("  %-10s ", line[0]), line[1])
	}
	if !m.Whole {
		term.PrintWrapped(w, "  ", "The log has domains only, so this may be about somebody else at the domain.")
	}
	for _, r := range m.Records {
		term.PrintWrapped(w, "  "+r.Time.Local().Format(time.TimeOnly)+"   ", mailwhy.Explain(r))
	}
	if m.More > 0 {
		fmt.Fprintf(w, "  and %s\n", text.Count(m.More, "more line", "more lines"))
	}
}

// dnsNotLogged says where to look if the gate answers over DNS only.
const dnsNotLogged = "This gate has DNS servers only, which do not log questions: spamgate check ADDRESS says what they answer, " +
	"and the metric spamgate_dns_questions_total counts the questions."

// printNothing says where the command has looked.
func (a *answer) printNothing(w io.Writer) {
	what := "the address " + a.asked
	if a.query.ID != "" {
		what = "the id " + a.query.ID
	}
	where := "Nothing about " + what + " in " + a.searched()
	if !a.query.Since.IsZero() {
		where += "; only those since " + a.query.Since.Local().Format(clock) + " counted"
	}
	term.PrintWrapped(w, "", where+".")
	a.printFleet(w)
	if a.onlyDNS {
		term.PrintWrapped(w, "", dnsNotLogged)
		return
	}
	if len(a.logs) == 0 {
		return
	}
	term.PrintWrapped(w, "", "Is the log elsewhere, or was it rotated away? --log FILE names another one, --unit another unit of the journal (root sees all of it).")
}

// printFleet says which gates of the fleet have answered, if it was asked.
func (a *answer) printFleet(w io.Writer) {
	if a.kept.fleet != nil {
		term.PrintWrapped(w, "", a.kept.fleet.Answered())
	}
}

// searched says what was searched, and how far back each reaches.
func (a *answer) searched() string {
	where := a.kept.where()
	if len(a.logs) == 0 {
		return where
	}
	if where != "" {
		where += "; "
	}
	where += strings.Join(a.logs, ", ")
	switch r := a.result; {
	case r.Lines == 0:
		where += ", which has no lines at all"
	case r.First.IsZero():
		where += ", where the lines that were looked at are not the gate's"
	default:
		where += fmt.Sprintf(", which has lines from %s to %s", r.First.Local().Format(clock), r.Last.Local().Format(clock))
	}
	return where
}

func (a *answer) printNow(w io.Writer) {
	if a.notNow != "" {
		term.PrintWrapped(w, "What would happen now is not known: ", a.notNow)
		return
	}
	if len(a.now) > 0 {
		fmt.Fprintln(w, "Now, as spamgate check says:")
	}
	for _, p := range a.now {
		switch {
		case p.Error != "":
			term.PrintWrapped(w, "  "+p.Address+": ", p.Error)
		default:
			for line := range strings.Lines(p.text) {
				fmt.Fprint(w, "  ", line)
			}
		}
	}
}

// The answer for programs.
type (
	answerJSON struct {
		Query    string        `json:"query"`
		Messages []messageJSON `json:"messages"`
		Omitted  int           `json:"omitted,omitempty"` // older messages
		Searched searchedJSON  `json:"searched"`
		Now      []present     `json:"now,omitempty"`
		NotNow   string        `json:"now_unknown,omitempty"`
	}
	messageJSON struct {
		ID      string      `json:"id,omitempty"`
		Gate    string      `json:"gate,omitempty"` // of the fleet, if that was asked
		Outcome string      `json:"outcome"`
		Whole   bool        `json:"certain"` // false: the log has only the domain of addresses
		Events  []eventJSON `json:"events"`
		More    int         `json:"more_events,omitempty"`
	}
	eventJSON struct {
		Time       time.Time         `json:"time"`
		Source     string            `json:"source"` // "history" or "log"
		Level      string            `json:"level"`
		Event      string            `json:"event"`
		Text       string            `json:"text"`
		Attributes map[string]string `json:"attributes"`
	}
	searchedJSON struct {
		History *historyJSON `json:"history,omitempty"`
		Logs    []string     `json:"logs"`
		First   *time.Time   `json:"first,omitempty"`
		Last    *time.Time   `json:"last,omitempty"`
		Dropped uint64       `json:"dropped_lines,omitempty"` // by the gate
		Skipped int          `json:"too_long_lines,omitempty"`
	}
	historyJSON struct {
		Reach *time.Time `json:"reaches_back_to,omitempty"` // nil: it is empty

		// Of the fleet, if it was asked.
		Gates      []string          `json:"gates,omitempty"`
		Missing    []string          `json:"missing,omitempty"`
		Errors     map[string]string `json:"errors,omitempty"`
		FleetError string            `json:"fleet_error,omitempty"`
	}
)

// source says where a record is from.
func source(r *mailwhy.Record) string {
	if r.Kept() {
		return "history"
	}
	return "log"
}

func (a *answer) forPrograms() answerJSON {
	r := a.result
	out := answerJSON{
		Query: a.asked, Messages: []messageJSON{}, Omitted: r.Omitted, Now: a.now, NotNow: a.notNow,
		Searched: searchedJSON{Logs: a.logs, Dropped: r.Dropped, Skipped: r.Skipped},
	}
	if a.kept.asked {
		out.Searched.History = &historyJSON{Reach: a.kept.reach}
		if f := a.kept.fleet; f != nil {
			out.Searched.History.Gates, out.Searched.History.Missing = f.Gates, f.Missing
			out.Searched.History.Errors, out.Searched.History.FleetError = f.Errors, f.FleetError
		}
	}
	if out.Searched.Logs == nil {
		out.Searched.Logs = []string{}
	}
	if !r.First.IsZero() {
		out.Searched.First, out.Searched.Last = &r.First, &r.Last
	}
	for _, m := range r.Messages {
		message := messageJSON{ID: m.ID, Gate: m.Gate(), Outcome: m.Outcome(), Whole: m.Whole, More: m.More}
		for _, r := range m.Records {
			message.Events = append(message.Events, eventJSON{r.Time, source(r), r.Level, r.Msg, mailwhy.Explain(r), r.Attrs()})
		}
		out.Messages = append(out.Messages, message)
	}
	return out
}
