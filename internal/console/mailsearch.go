package console

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"spamgate/blocklist/verdict"
	"spamgate/internal/decisions"
	"spamgate/internal/words"
)

// pageRows is how many rows a page of the history has.
const pageRows = 50

// searchSpans are the spans of time that the search offers.
var searchSpans = []option{{"1h", "the last hour"}, {"1d", "the last day"}, {"7d", "the last 7 days"}, {"30d", "the last 30 days"}}

// option is a choice in a form.
type option struct{ Value, Text string }

// actionOptions returns the choices of an outcome.
func actionOptions() (all []option) {
	for _, a := range words.Actions {
		all = append(all, option{a, verdict.ActionOf(a).Done()})
	}
	return all
}

// searchFields are the fields of the search by their names in the URL. "q" is anything: an
// address, a domain, a client, a list or an id, and "gate" the only gate of the fleet that is asked.
var searchFields = []string{"q", "sender", "recipient", "domain", "list", "id", "action", "client", "since", "until", "gate"}

// mailSearch is the search over the history.
type mailSearch struct {
	Fields  map[string]string // as typed, by the names in the URL
	Problem string            // why there is no answer
	Note    string            // what the answer does not tell

	query decisions.Query
}

// values returns the fields that are filled in.
func (s *mailSearch) values() url.Values {
	v := url.Values{}
	for name, text := range s.Fields {
		v.Set(name, text)
	}
	return v
}

// Detailed reports whether a field beside the usual ones is filled in.
func (s *mailSearch) Detailed() bool {
	for name := range s.Fields {
		if name != "q" && name != "action" && name != "since" && name != "gate" {
			return true
		}
	}
	return false
}

// mailSearch returns the search that the URL describes.
func (x *exchange) mailSearch() *mailSearch {
	s := &mailSearch{Fields: map[string]string{}}
	given := x.r.URL.Query()
	for _, name := range searchFields {
		if text := strings.TrimSpace(given.Get(name)); text != "" && len(text) <= longestField {
			s.Fields[name] = text
		}
	}
	var err error
	s.query, s.Note, err = x.console.mailQuery(given, x.who)
	if err == nil {
		err = x.checkGate(s.Fields["gate"])
	}
	switch any := strings.TrimSpace(given.Get("q")); {
	case err != nil || any == "":
	case len(any) > longestField:
		err = invalid(fmt.Sprintf("The search has more than %s characters.", number(longestField)))
	default:
		err = x.console.fillAny(&s.query, any)
		s.Note = x.console.mailNote(&s.query)
	}
	if err != nil {
		s.Problem = err.Error()
	}
	s.query.Limit = pageRows
	return s
}

// idInAReply is the id in a refusal or in a log line, as people paste it.
var idInAReply = regexp.MustCompile(`(?i)\bid[ =:]+([A-Z2-7]{12})\b`)

// fillAny adds the field for everything to a query: what looks like an id is one, then a
// client, an address, the name of a list, and a domain.
func (c *Console) fillAny(q *decisions.Query, text string) (err error) {
	if id := idInAReply.FindStringSubmatch(text); id != nil {
		text = id[1]
	}
	if id := strings.ToUpper(text); messageID.MatchString(id) {
		q.ID = id
		return nil
	}
	if client, err := wantedClient(text); err == nil {
		q.Client = client
		return nil
	}
	if text == "<>" || strings.Contains(strings.TrimLeft(text, "*@"), "@") || hashedAddress.MatchString(text) {
		q.Address, err = c.wantedAddress(text)
		return err
	}
	for _, l := range c.Config().Lists {
		if l.Name == text {
			q.List = text
			return nil
		}
	}
	if !strings.Contains(text, ".") {
		return invalid(strconv.Quote(text) + " is not an address, a domain, a client, a list or an id. An id has 12 letters and digits, as at the end of a refusal.")
	}
	q.Domain, err = c.wantedDomain(text)
	return err
}

// liveSince returns the time since which the live view shows rows: that of the last row the
// browser has, else that of the page.
func (x *exchange) liveSince() time.Time {
	for _, text := range []string{x.r.Header.Get("Last-Event-ID"), x.query("from")} {
		if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
			return t
		}
	}
	return x.console.Now()
}
