package console

import (
	"errors"
	"net/http"
	"net/netip"
	"time"

	"spamgate/blocklist/verdict"
	"spamgate/internal/accounts"
	"spamgate/internal/check"
	"spamgate/internal/decisions"
	"spamgate/internal/fleetsearch"
	"spamgate/internal/words"
)

var untilParameter = parameter{Name: "until", What: "Only before this time, written alike"}

// mailOperations are about mail: what happened, and what would happen.
var mailOperations = []row{
	op("check", "GET", "/check", accounts.Try, "What the gate would do with mail of a sender, and why",
		ok("What spamgate check --json prints, with trace what check --trace --json prints"), (*exchange).apiCheck,
		parameter{Name: "sender", What: `The sender's address; "<>" for the null sender`, Required: true},
		parameter{Name: "recipient", What: "A recipient's address; an account for some domains has to name one", Repeated: true},
		parameter{Name: "client", What: "The client's IP address, for SPF"},
		parameter{Name: "helo", What: "The name with which the client greets, for SPF"},
		parameter{Name: "listener", What: "The listener to which the client is connected"},
		parameter{Name: "trace", What: `"1": with every key that is looked up`, Values: []string{"0", "1"}},
		parameter{Name: "dns", What: `"1": lists in DNS are asked, and proofs are sought`, Values: []string{"0", "1"}}),
	op("findDecisions", "GET", "/decisions", accounts.SeeMail, "Decisions in the history, the newest first",
		ok("A page of decisions"), (*exchange).apiDecisions,
		parameter{Name: "id", What: "The id of the message"},
		parameter{Name: "sender", What: "A sender, in the envelope or the header"},
		parameter{Name: "recipient", What: "A recipient"},
		parameter{Name: "domain", What: "The domain of a sender, or one above it"},
		parameter{Name: "list", What: "The list that decided"},
		parameter{Name: "action", What: "What was done", Values: words.Actions},
		parameter{Name: "client", What: "The client's IP address"},
		sinceParameter, untilParameter,
		parameter{Name: "limit", What: "The greatest number of decisions: 1 to 1000, usually 100; a page of large ones ends earlier"},
		parameter{Name: "before", What: "next of the page before"},
		parameter{Name: "gate", What: "Only the history of this gate of the fleet; else all gates are asked"}),
	op("topDecisions", "GET", "/decisions/top", accounts.SeeTotals, "The senders, domains, lists or clients with most decisions",
		ok("The first ones"), (*exchange).apiTop,
		parameter{Name: "by", What: "Of what", Values: []string{"senders", "domains", "lists", "clients"}, Required: true},
		sinceParameter,
		parameter{Name: "limit", What: "How many: 1 to 1000, usually 20"}),
	op("totals", "GET", "/totals", accounts.SeeTotals, "Numbers of decisions over time, by action, list and reason",
		ok("The numbers of each minute in up to 3 hours of the last two days, of each hour in up to 32 days, else of each day (UTC)"), (*exchange).apiTotals, sinceParameter, untilParameter),
}

// apiTop is a ranking.
type apiTop struct {
	By    string             `json:"by"`
	Since time.Time          `json:"since"`
	Top   []decisions.Ranked `json:"top"`

	// Reach is the time of the oldest decision in the history; nil if it is empty.
	Reach *time.Time `json:"reaches_back_to,omitempty"`

	// Fault says why the history stands still: its newest decisions are missing.
	Fault string `json:"stands_still,omitempty"`
}

// apiTotals are numbers of decisions.
type apiTotals struct {
	Since  time.Time         `json:"since"`
	Until  time.Time         `json:"until"`
	Totals []decisions.Total `json:"totals"`
}

// lastDay is how far rankings and totals reach back unless since says it.
const lastDay = 24 * time.Hour

var errNoHistory = failure{http.StatusNotFound, "The gate keeps no history: [decisions] keep is 0."}

// apiCheck says what would happen to mail.
func (x *exchange) apiCheck(none) (any, error) {
	q := check.Question{
		Listener: x.query("listener"), Address: x.query("sender"), Recipients: x.r.URL.Query()["recipient"],
		Helo: x.query("helo"), Trace: x.query("trace") == "1", Offline: x.query("dns") != "1",
	}
	if err := mayTry(x.who, q.Recipients); err != nil {
		return nil, err
	}
	if text := x.query("client"); text != "" {
		client, err := wantedClient(text)
		if err != nil {
			return nil, err
		}
		q.Client = netip.MustParseAddr(client)
	}
	answer, err := x.console.Check.Address(x.r.Context(), q)
	switch {
	case err == nil:
		return answer.JSON, nil
	case x.r.Context().Err() != nil:
		return nil, x.r.Context().Err()
	case errors.Is(err, verdict.ErrNoAnswer):
		return nil, failure{http.StatusServiceUnavailable, sentence(err)}
	}
	return nil, invalid(sentence(err))
}

// apiDecisions finds decisions.
func (x *exchange) apiDecisions(none) (page fleetsearch.Page, err error) {
	q, _, err := x.console.mailQuery(x.r.URL.Query(), x.who)
	if err != nil {
		return page, err
	}
	page, err = x.findDecisions(q, x.query("gate"))
	if page.Gates == nil {
		page.Fault = x.historyFault()
	}
	return page, err
}

// historyFault returns why the history of this gate stands still, for who may see that; else "".
func (x *exchange) historyFault() string {
	if r := x.console.recorder(); r != nil && x.who.May(accounts.SeeHealth) {
		return r.Stats().Err
	}
	return ""
}

// apiTop ranks senders, domains, lists or clients.
func (x *exchange) apiTop(none) (t apiTop, err error) {
	if !x.console.keepsHistory() {
		return t, errNoHistory
	}
	if err := mayChange(x.who, accounts.SeeTotals, ""); err != nil {
		return t, err
	}
	if t.Since, _, err = x.span(); err != nil {
		return t, err
	}
	n, err := x.limit(20, mostDecisions)
	if err != nil {
		return t, err
	}
	t.By, t.Top, t.Fault = x.query("by"), []decisions.Ranked{}, x.historyFault()
	top, err := x.console.History.Top(x.r.Context(), t.By, t.Since, n, decisions.Query{RecipientDomains: x.who.Domains})
	if err != nil {
		return t, err
	}
	t.Top = append(t.Top, top...)
	t.Reach, err = x.historyReach()
	return t, err
}

// apiTotals counts decisions over time.
func (x *exchange) apiTotals(none) (t apiTotals, err error) {
	if !x.console.keepsHistory() {
		return t, errNoHistory
	}
	if t.Since, t.Until, err = x.span(); err != nil {
		return t, err
	}
	totals, err := x.console.History.Totals(x.r.Context(), t.Since, t.Until)
	t.Totals = append([]decisions.Total{}, totals...)
	return t, err
}

// span returns the times of the fields since and until, or else of the last day.
func (x *exchange) span() (since, until time.Time, err error) {
	now := x.console.Now().UTC()
	since, until = now.Add(-lastDay), now
	for name, t := range map[string]*time.Time{"since": &since, "until": &until} {
		if text := x.query(name); text != "" && err == nil {
			*t, err = parsePast(text, now)
		}
	}
	return since, until, err
}
