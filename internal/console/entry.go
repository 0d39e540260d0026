package console

import (
	"cmp"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
	"spamgate/internal/accounts"
	"spamgate/internal/config"
	"spamgate/internal/fleetsearch"
	"spamgate/internal/listedit"
	"spamgate/internal/logging"
	"spamgate/internal/managed"
	"spamgate/internal/providers"
)

var entryRoutes = []route{
	{"GET", "/entry/new", accounts.LetIn, (*exchange).askEntry},
	{"POST", "/entry/new", accounts.LetIn, (*exchange).addEntry},
}

// entryForm is the form that lets a sender in, or blocks one: what was filled in, what can be
// chosen, and what it would change.
type entryForm struct {
	Type   string // "allow" or "block"
	Sender string // as typed: an address or a domain
	What   string // whatAddress ...
	Whom   string // forAll ...
	For    string // the recipient, as typed
	Until  string // "1h", "1d", "30d", "" for good, or "date"
	Date   string // with "date"
	List   string
	ID     string // the message that the user came from
	Gate   string // the gate of the fleet that had it
	Back   string
	Why    string

	Allow   bool
	Whats   []option
	Whoms   []option
	Untils  []option
	Lists   []config.List // that the entry can go to
	Missing string        // the lines of config.toml that make a list for the entry

	Problem  string // with what was filled in
	Show     bool   // the preview is wanted, and there is no problem
	Entry    string // as the list has it
	To       string // the recipients' side; "" for all
	Ends     time.Time
	End      string           // Ends in words; "" for good
	Would    *managed.Outcome // what the list would do with it
	Cautions []string
	Button   string
	Preview  *entryPreview
}

// addressIn returns the address in a text in normal form, "" if it is a domain alone, and the domain, "" if
// there is none. Before a domain there may be some of the characters in around.
func addressIn(text, around string) (address, domain string) {
	if a, err := sender.Parse(text); err == nil && a.Domain() != "" {
		return a.String(), a.Domain()
	}
	domain, err := sender.NormalizeDomain(strings.TrimLeft(text, around))
	if err != nil {
		return "", ""
	}
	return "", domain
}

// domain returns the domain of the sender, "" if there is none.
func (f *entryForm) domain() string {
	_, domain := addressIn(f.Sender, "@*.")
	return domain
}

// address returns the sender's address in normal form, "" if it is a domain alone.
func (f *entryForm) address() string {
	if strings.HasPrefix(f.Sender, "*@") {
		return ""
	}
	address, _ := addressIn(f.Sender, "@*.")
	return address
}

// recipient returns the recipient in normal form, "" if it is none, and its domain.
func (f *entryForm) recipient() (address, domain string) { return addressIn(f.For, "@*") }

// askEntry shows the form, and with show=1 what it would change.
func (x *exchange) askEntry() error {
	f := x.entryForm()
	if !f.Allow && !x.who.MaySome(accounts.Block) {
		return errForbidden
	}
	if x.query("show") != "" {
		f.Show = true
		if err := x.previewEntry(f); err != nil {
			return err
		}
	}
	return x.showEntry(f)
}

// showEntry shows the form.
func (x *exchange) showEntry(f *entryForm) error {
	title := "Block a sender"
	if f.Allow {
		title = "Let a sender in"
	}
	nav := "/lists"
	if f.ID != "" {
		nav = "/mail"
	}
	return x.render("entry", view{Title: title, Nav: nav, Data: f})
}

// entryForm returns the form as it was filled in, with the choices that the account has.
func (x *exchange) entryForm() *entryForm {
	value := func(name string) string { return strings.TrimSpace(x.r.FormValue(name)) }
	f := &entryForm{
		Type: value("type"), Sender: value("sender"), What: value("what"), Whom: value("whom"), For: value("recipient"),
		Until: value("until"), Date: value("date"), List: value("list"), ID: value("id"), Gate: value("gate"), Back: value("back"), Why: value("why"),
	}
	if f.Type != "block" {
		f.Type = "allow"
	}
	f.Allow = f.Type == "allow"
	if !fleetsearch.ValidName(f.Gate) {
		f.Gate = ""
	}
	f.Sender = strings.Trim(f.Sender, "<>")
	if value("sender") == "<>" {
		f.Sender = "<>"
	}
	f.Back = cmp.Or(strings.TrimPrefix(localPath(f.Back), "/"), x.cameFrom(f))
	f.Back = "/" + strings.TrimPrefix(f.Back, "/")
	f.choices(x)
	return f
}

// cameFrom returns the page that the user probably came from.
func (x *exchange) cameFrom(f *entryForm) string {
	switch {
	case f.ID != "":
		return messagePath(f.ID, f.Gate)
	case f.List != "" && x.who.May(accounts.SeeLists):
		return "/lists/" + url.PathEscape(f.List)
	case x.who.May(accounts.SeeLists):
		return "/lists"
	}
	return "/"
}

// list returns the list that the entry goes to; nil if there is none.
func (f *entryForm) list() *config.List {
	for i := range f.Lists {
		if f.Lists[i].Name == f.List {
			return &f.Lists[i]
		}
	}
	return nil
}

// newEntry returns the entry that the form describes. The error is for users.
func (f *entryForm) newEntry(now time.Time) (e managed.NewEntry, err error) {
	switch address, domain := f.address(), f.domain(); {
	case f.Sender == "":
		return e, invalid("Write the address or the domain of the sender.")
	case !strings.Contains(f.Sender, "@") && logging.Hidden(f.Sender):
		return e, invalid("The history has only a hash of this address: write the address itself.")
	case f.What == whatNull:
		e.Entry = "<>"
	case f.What == whatAddress && address == "":
		return e, invalid(visible(f.Sender) + " is not an address. Choose its domain, or write an address such as user@mail.spam.example.")
	case f.What == whatAddress:
		e.Entry = address
	case domain == "":
		return e, invalid(visible(f.Sender) + " has no domain.")
	case f.What == whatDomain:
		e.Entry = "@" + domain
	default:
		e.Entry = "." + domain // with its subdomains in a list with match = "exact", too
	}
	if e.For, err = f.side(); err != nil {
		return e, err
	}
	e.Reason = f.Why
	switch {
	case f.Until == "date" && f.Date == "":
		err = invalid("Choose the day on which the entry ends.")
	case f.Until == "date":
		e.Until, err = parseEnd(f.Date, now)
	case f.Until != "never":
		e.Until, err = parseEnd(f.Until, now)
	}
	return e, err
}

// side returns the recipients' side of the entry.
func (f *entryForm) side() (string, error) {
	recipient, domain := f.recipient()
	switch {
	case f.Whom == forAll:
		return "", nil
	case f.Whom == forRecipient && recipient != "":
		return recipient, nil
	case f.Whom == forDomain && domain != "":
		return "@" + domain, nil
	case f.For == "":
		return "", invalid("Write the recipient for whom the entry counts.")
	}
	return "", invalid(visible(f.For) + " is not a recipient: write an address such as ann@example.net.")
}

// previewEntry checks the form without its reason, which stands beside the button, and adds what the
// entry would change.
func (x *exchange) previewEntry(f *entryForm) error {
	l := f.list()
	if l == nil {
		f.Show = false
		return nil
	}
	e, err := f.newEntry(x.console.Now())
	e.Reason = ""
	if err == nil {
		err = x.console.mayAdd(x.who, l, e.Name, e.Until)
	}
	var result managed.Result
	if err == nil {
		result, err = x.console.Editor.Add(x.r.Context(), by(x.who), l.Name, []managed.NewEntry{e}, managed.Options{DryRun: true})
	}
	if err == nil {
		err = mayReplace(x.who, result, e.Until)
	}
	if err != nil {
		return x.problem(f, err)
	}
	f.Entry, f.To, f.Ends, f.Would = e.Entry, e.For, e.Until, &result.Entries[0]
	f.Entry = f.Would.Entry
	if !f.Ends.IsZero() {
		f.End = untilTime(f.Ends, x.console.Now())
	}
	f.cautions(l)
	f.Button = f.consequence()
	f.Preview = x.entryPreview(f, l)
	return nil
}

// problem shows an error that the user can correct beside the form. Others are returned.
func (x *exchange) problem(f *entryForm, err error) error {
	var shown failure
	if !errors.As(err, &shown) {
		var ok bool
		if shown, ok = editFailure(err); !ok {
			return err
		}
	}
	f.Problem, f.Show, x.status = shown.text, false, shown.status
	return nil
}

// cautions adds what the user should know about the entry.
func (f *entryForm) cautions(l *config.List) {
	add := func(text string) { f.Cautions = append(f.Cautions, text) }
	domain := f.domain()
	wide := f.What == whatDomain || f.What == whatBelow
	switch {
	case wide && f.Allow && slices.Contains(providers.Domains(), domain):
		add(domain + " is a large mail provider: everybody can have an address there, also those who send spam. Let in the address alone.")
	case f.What == whatBelow && listfile.HasTenants(domain):
		add("Strangers have names below " + domain + ": the entry covers them all.")
	case f.What == whatNull && !f.Allow:
		add("Bounces have no sender: servers tell with them that a message was not delivered. They would all be refused.")
	}
	if f.Allow && len(l.ProvenBy) == 0 && f.What != whatNull {
		add("Senders are easily forged: mail of others who write this sender is let in, too.")
	}
	if f.Allow && len(l.ProvenBy) > 0 {
		add("The entry counts only for mail that " + strings.ToUpper(strings.Join(l.ProvenBy, " or ")) + " proves to be from this sender.")
	}
	if l.Action == "monitor" {
		add("The list only logs (action = \"monitor\"): it refuses nobody.")
	}
	for _, c := range f.Would.Covered {
		add("The list has the wider entry " + c.Text() + " already.")
	}
}

// Known says what the list has of the entry already; "" for nothing.
func (f *entryForm) Known() string {
	switch w := f.Would; {
	case w == nil:
	case w.What == listedit.Present:
		return "The list has this entry already, as it is."
	case w.Was != nil && w.Was.Until != "":
		return "The list has this entry already, until " + localTimes(w.Was.Until) + ". It gets the new end and reason."
	case w.Was != nil:
		return "The list has this entry already, for good. It gets the new end and reason."
	}
	return ""
}

// Fields are the fields of the form that adds the entry, apart from the reason.
func (f *entryForm) Fields() map[string]string {
	return map[string]string{
		"type": f.Type, "sender": f.Sender, "what": f.What, "whom": f.Whom, "recipient": f.For,
		"until": f.Until, "date": f.Date, "list": f.List, "id": f.ID, "gate": f.Gate, "back": f.Back,
	}
}

// consequence says in a few words what the button does.
func (f *entryForm) consequence() string {
	verb, what := "Block ", f.Entry
	if f.Allow {
		verb = "Let in "
	}
	switch f.What {
	case whatDomain:
		what = "everyone at " + f.domain()
	case whatBelow:
		what = f.domain() + " and its subdomains"
	case whatNull:
		what = "bounces"
	}
	whom := ""
	switch f.Whom {
	case forRecipient:
		whom = " for " + f.To
	case forDomain:
		whom = " for everybody at " + strings.TrimPrefix(f.To, "@")
	}
	until := map[string]string{"1h": "for an hour", "1d": "for a day", "30d": "for a month", "never": "for good", "date": "until " + f.Date}[f.Until]
	return verb + what + whom + " " + until
}

// addEntry adds the entry of the form.
func (x *exchange) addEntry() error {
	f := x.entryForm()
	if !f.Allow && !x.who.MaySome(accounts.Block) {
		return errForbidden
	}
	f.Show = true
	l := f.list()
	if l == nil {
		x.status = 409
		return x.showEntry(f)
	}
	result, err := x.addFrom(f, l)
	if err != nil {
		if err := x.problem(f, err); err != nil {
			return err
		}
		text, status := f.Problem, x.status
		f.Show, f.Problem, x.status = true, "", 0
		if err := x.previewEntry(f); err != nil {
			return err
		}
		f.Problem, x.status = cmp.Or(f.Problem, text), cmp.Or(x.status, status)
		return x.showEntry(f)
	}
	x.logChange("add", result)
	if result.NotLive != "" {
		return failure{202, "The entry is in the list " + l.Name + ", but does not count yet: " + sentence(errors.New(result.NotLive))}
	}
	return x.redirect(withNotice(f.Back, result))
}

// addFrom adds the entry of a form.
func (x *exchange) addFrom(f *entryForm, l *config.List) (managed.Result, error) {
	if _, err := x.reason(); err != nil {
		return managed.Result{}, err
	}
	e, err := f.newEntry(x.console.Now())
	if err != nil {
		return managed.Result{}, err
	}
	return x.add(l, e)
}
