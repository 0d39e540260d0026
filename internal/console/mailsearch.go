package console

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/internal/accounts"
	"spamgate/internal/decisions"
	"spamgate/internal/fleetsearch"
	"spamgate/internal/logging"
	"spamgate/internal/mailwhy"
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

// fields returns the fields of the URL that are filled in, unless they are too long.
func (x *exchange) fields(names ...string) map[string]string {
	filled := map[string]string{}
	for _, name := range names {
		if text := x.query(name); text != "" && len(text) <= longestField {
			filled[name] = text
		}
	}
	return filled
}

// fieldValues returns fields for a URL.
func fieldValues(fields map[string]string) url.Values {
	v := url.Values{}
	for name, text := range fields {
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
	s := &mailSearch{Fields: x.fields(searchFields...)}
	given := x.r.URL.Query()
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

// fillAny adds the field for everything to a query: what looks like an id is one, then a
// client, an address, the name of a list, and a domain.
func (c *Console) fillAny(q *decisions.Query, text string) (err error) {
	if id, ok := mailwhy.FindID(text); ok {
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

const (
	mostDecisions = 1000 // of a page
	longestField  = 1000 // in bytes; an address has at most 254
)

var (
	messageID     = regexp.MustCompile(`^[A-Z2-7]{12}$`)
	hashedAddress = regexp.MustCompile(`^[0-9a-f]{16}$`)
)

// mailQuery returns the query over the history that the fields of a URL describe: sender,
// recipient, domain, list, id, action, client, since, until, limit and before. Addresses become
// what the history has for them, and the account sees its own recipients only. The note says
// what an answer does not tell; the error is for users.
func (c *Console) mailQuery(v url.Values, who accounts.Account) (q decisions.Query, note string, err error) {
	q.RecipientDomains = who.Domains
	past := func(text string) (time.Time, error) { return parsePast(text, c.Now()) }
	for _, f := range []struct {
		name  string
		parse func(string) error
	}{
		{"id", into(&q.ID, parseID)},
		{"sender", into(&q.Sender, c.wantedAddress)},
		{"recipient", into(&q.Recipient, c.wantedAddress)},
		{"domain", into(&q.Domain, c.wantedDomain)},
		{"list", into(&q.List, asItIs)},
		{"action", into(&q.Action, parseAction)},
		{"client", into(&q.Client, wantedClient)},
		{"since", into(&q.Since, past)},
		{"until", into(&q.Until, past)},
		{"limit", into(&q.Limit, parseLimit)},
		{"before", into(&q.Before, func(s string) (decisions.Cursor, error) { return decisions.Cursor(s), nil })},
	} {
		text := strings.TrimSpace(v.Get(f.name))
		if len(text) > longestField && (f.name != "before" || len(text) > fleetsearch.MaxCursor) {
			return q, "", invalid(fmt.Sprintf("The field %s has more than %s characters.", f.name, number(longestField)))
		}
		if text == "" {
			continue
		}
		if err := f.parse(text); err != nil {
			return q, "", err
		}
	}
	return q, c.mailNote(&q), nil
}

// into returns a function that sets a field to what parse makes of a text.
func into[T any](field *T, parse func(string) (T, error)) func(string) error {
	return func(text string) (err error) {
		*field, err = parse(text)
		return err
	}
}

func asItIs(text string) (string, error) { return text, nil }

// mailNote returns a note if an answer to the query may be about others.
func (c *Console) mailNote(q *decisions.Query) string {
	if c.Config().Log.Addresses == logging.AddressesDomain && q.Address+q.Sender+q.Recipient != "" {
		return `The history has only the domains of addresses ([log] addresses = "domain"), so these messages may be somebody else's at the domain.`
	}
	return ""
}

func parseID(text string) (string, error) {
	id := strings.ToUpper(text)
	if !messageID.MatchString(id) {
		return "", invalid(fmt.Sprintf("%q is not an id: it has 12 letters and digits from 2 to 7, as at the end of a refusal.", text))
	}
	return id, nil
}

func parseAction(text string) (string, error) {
	action, err := words.ParseAction(text)
	return action, typed(err)
}

func parseLimit(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > mostDecisions {
		return 0, invalid(fmt.Sprintf("The field limit is not a number from 1 to %d.", mostDecisions))
	}
	return n, nil
}

// wantedAddress returns an address as the history shows it.
func (c *Console) wantedAddress(text string) (string, error) {
	if text == "<>" || c.Config().Log.Addresses == logging.AddressesHash && hashedAddress.MatchString(text) {
		return text, nil
	}
	address, err := sender.Parse(pastedAddress(text))
	if err != nil {
		return "", invalid(fmt.Sprintf("%q is not an address: %v.", text, err))
	}
	return c.Show(address.String()), nil
}

// pastedAddress returns the address in a text as mail programs and pages have it: with a name before
// it, as in "Bob <bob@example.net>", or after mailto:.
func pastedAddress(text string) string {
	if pos := strings.LastIndexByte(text, '<'); pos >= 0 && strings.HasSuffix(text, ">") {
		text = text[pos+1 : len(text)-1]
	}
	const mailto = "mailto:"
	if len(text) > len(mailto) && strings.EqualFold(text[:len(mailto)], mailto) {
		text, _, _ = strings.Cut(text[len(mailto):], "?")
	}
	return text
}

// wantedDomain returns the normal form of a domain.
func (c *Console) wantedDomain(text string) (string, error) {
	if c.Config().Log.Addresses == logging.AddressesHash {
		return "", invalid(`The history has hashes in place of addresses ([log] addresses = "hash"): search for a whole address.`)
	}
	domain, err := sender.NormalizeDomain(strings.Trim(text, "*@."))
	if err != nil {
		return "", invalid(fmt.Sprintf("%q is not a domain: %v.", text, err))
	}
	return domain, nil
}

// wantedClient returns an IP address, which may have a port, as the history has it.
func wantedClient(text string) (string, error) {
	address, err := netip.ParseAddr(strings.Trim(clientIP(text), "[]"))
	if err != nil {
		return "", invalid(fmt.Sprintf("%q is not an IP address: write it as 192.0.2.1 or 2001:db8::1.", text))
	}
	return address.Unmap().WithZone("").String(), nil
}
