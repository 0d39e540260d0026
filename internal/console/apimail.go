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

var untilParameter = parameter{name: "until", what: "Only before this time, written alike"}

// mailOperations are about mail: what happened, and what would happen.
var mailOperations = []operation{
	{
		method: "GET", path: "/check", may: accounts.Try, id: "check", summary: "What the gate would do with mail of a sender, and why",
		query: []parameter{
			{name: "sender", what: `The sender's address; "<>" for the null sender`, required: true},
			{name: "recipient", what: "A recipient's address; an account for some domains has to name one", repeated: true},
			{name: "client", what: "The client's IP address, for SPF"},
			{name: "helo", what: "The name with which the client greets, for SPF"},
			{name: "listener", what: "The listener to which the client is connected"},
			{name: "trace", what: `"1": with every key that is looked up`, values: []string{"0", "1"}},
			{name: "dns", what: `"1": lists in DNS are asked, and proofs are sought`, values: []string{"0", "1"}},
		},
		answers: []answer{{http.StatusOK, "What spamgate check --json prints, with trace what check --trace --json prints", nil}},
		serve:   (*exchange).apiCheck,
	},
	{
		method: "GET", path: "/decisions", may: accounts.SeeMail, id: "findDecisions", summary: "Decisions in the history, the newest first",
		query: []parameter{
			{name: "id", what: "The id of the message"},
			{name: "sender", what: "A sender, in the envelope or the header"},
			{name: "recipient", what: "A recipient"},
			{name: "domain", what: "The domain of a sender, or one above it"},
			{name: "list", what: "The list that decided"},
			{name: "action", what: "What was done", values: words.Actions},
			{name: "client", what: "The client's IP address"},
			sinceParameter, untilParameter,
			{name: "limit", what: "The greatest number of decisions: 1 to 1000, usually 100; a page of large ones ends earlier"},
			{name: "before", what: "next of the page before"},
			{name: "gate", what: "Only the history of this gate of the fleet; else all gates are asked"},
		},
		answers: []answer{{http.StatusOK, "A page of decisions", fleetsearch.Page{}}},
		serve:   (*exchange).apiDecisions,
	},
	{
		method: "GET", path: "/decisions/top", may: accounts.SeeTotals, id: "topDecisions", summary: "The senders, domains, lists or clients with most decisions",
		query: []parameter{
			{name: "by", what: "Of what", values: []string{"senders", "domains", "lists", "clients"}, required: true},
			sinceParameter,
			{name: "limit", what: "How many: 1 to 1000, usually 20"},
		},
		answers: []answer{{http.StatusOK, "The first ones", apiTop{}}},
		serve:   (*exchange).apiTop,
	},
	{
		method: "GET", path: "/totals", may: accounts.SeeTotals, id: "totals", summary: "Numbers of decisions over time, by action, list and reason",
		query:   []parameter{sinceParameter, untilParameter},
		answers: []answer{{http.StatusOK, "The numbers of each minute in up to 3 hours of the last two days, of each hour in up to 32 days, else of each day (UTC)", apiTotals{}}},
		serve:   (*exchange).apiTotals,
	},
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
func (x *exchange) apiCheck() (any, error) {
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
func (x *exchange) apiDecisions() (any, error) {
	q, _, err := x.console.mailQuery(x.r.URL.Query(), x.who)
	if err != nil {
		return nil, err
	}
	page, err := x.findDecisions(q, x.query("gate"))
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
func (x *exchange) apiTop() (any, error) {
	if !x.console.keepsHistory() {
		return nil, errNoHistory
	}
	if err := mayChange(x.who, accounts.SeeTotals, ""); err != nil {
		return nil, err
	}
	since, _, err := x.span()
	if err != nil {
		return nil, err
	}
	n, err := x.limit(20, mostDecisions)
	if err != nil {
		return nil, err
	}
	by := x.query("by")
	top, err := x.console.History.Top(x.r.Context(), by, since, n, decisions.Query{RecipientDomains: x.who.Domains})
	if err != nil {
		return nil, err
	}
	reach, err := x.historyReach()
	return apiTop{by, since, append([]decisions.Ranked{}, top...), reach, x.historyFault()}, err
}

// apiTotals counts decisions over time.
func (x *exchange) apiTotals() (any, error) {
	if !x.console.keepsHistory() {
		return nil, errNoHistory
	}
	since, until, err := x.span()
	if err != nil {
		return nil, err
	}
	totals, err := x.console.History.Totals(x.r.Context(), since, until)
	return apiTotals{since, until, append([]decisions.Total{}, totals...)}, err
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
