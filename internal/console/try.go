package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"spamgate/blocklist/verdict"
	"spamgate/internal/accounts"
	"spamgate/internal/check"
)

var tryRoutes = []route{
	{"GET", "/try", accounts.Try, (*exchange).try},
	{"POST", "/try", accounts.Try, (*exchange).tryMessage},
}

const (
	maxTried  = 10 << 20         // bytes of a message
	tryTime   = 20 * time.Second // for an answer; lists in DNS may be slow
	readTime  = time.Minute      // to receive a message
	tryPlaces = 2                // messages that are held in memory at once
)

// tryForm is what the page Try shows.
type tryForm struct {
	Address, Recipient, Client, Helo, Listener string
	From, Message                              string // of a message

	Listeners []string // to choose from, if there are several
	Bound     []string // domains of which a recipient is needed
	Tried     string   // what the result is about
	Result    *tried
	Problem   string
	OfMessage bool   // the result is about a message
	LetIn     string // the path of the form that lets the sender in; "" if the account may not
}

// tried is the answer to a question.
type tried struct {
	Action verdict.Action
	Listed bool
	Text   string // as "spamgate check" prints it
	Trace  string
}

// tryForm returns the form as it was filled in.
func (x *exchange) tryForm() *tryForm {
	value := func(name string) string { return strings.TrimSpace(x.r.FormValue(name)) }
	f := &tryForm{
		Address: value("address"), Recipient: value("recipient"), Client: value("client"), Helo: value("helo"),
		Listener: value("listener"), From: value("from"), Bound: x.who.Domains,
	}
	c := x.console.Config()
	for _, l := range c.Listeners {
		f.Listeners = append(f.Listeners, l.Name)
	}
	for _, d := range c.Doors {
		f.Listeners = append(f.Listeners, d.Name)
	}
	return f
}

// question returns the question of the form. The error is for users.
func (f *tryForm) question(who accounts.Account) (q check.Question, err error) {
	q = check.Question{Listener: f.Listener, Address: f.Address, Helo: f.Helo}
	if f.Recipient != "" {
		q.Recipients = strings.FieldsFunc(f.Recipient, func(r rune) bool { return r == ',' || r == ' ' })
	}
	if f.Client != "" {
		if q.Client, err = netip.ParseAddr(f.Client); err != nil {
			return q, invalid(visible(f.Client) + " is not an IP address.")
		}
	}
	return q, mayTry(who, q.Recipients)
}

// try says what happens to the mail of an address.
func (x *exchange) try() error {
	f := x.tryForm()
	if f.Address == "" {
		return x.showTry(f)
	}
	q, err := f.question(x.who)
	if err == nil {
		f.Tried = f.Address
		f.Result, err = x.answer(func(ctx context.Context, trace bool) (*check.Answer, error) {
			q.Trace = trace
			return x.console.Check.Address(ctx, q)
		})
	}
	if f.Result != nil && f.Result.Listed && x.who.MaySome(accounts.LetIn) {
		back := url.URL{Path: "/try", RawQuery: url.Values{"address": {f.Address}, "recipient": {f.Recipient}}.Encode()}
		q := url.Values{"type": {"allow"}, "sender": {f.Address}, "recipient": {f.Recipient}, "back": {back.String()}}
		f.LetIn = "/entry/new?" + q.Encode()
	}
	return x.tried(f, err)
}

// tryMessage says what happens to a message.
func (x *exchange) tryMessage() error {
	select {
	case x.console.tries <- struct{}{}:
		defer func() { <-x.console.tries }()
	default:
		return failure{http.StatusServiceUnavailable, "Others try messages at this moment. Try again in a few seconds."}
	}
	_ = http.NewResponseController(x.w).SetReadDeadline(time.Now().Add(readTime)) // tests have none
	if err := x.parseForm(); err != nil {
		return err
	}
	var tooLarge *http.MaxBytesError
	switch err := x.r.ParseMultipartForm(maxTried + maxForm); {
	case errors.As(err, &tooLarge):
		return err
	case err != nil && !errors.Is(err, http.ErrNotMultipart): // malformed, cut off, or of too many parts
		return invalid(fmt.Sprintf("The form cannot be read: %v.", err))
	}
	f := x.tryForm()
	f.OfMessage = true
	message, err := x.message()
	if err != nil {
		return x.tried(f, err)
	}
	if pasted := x.r.PostFormValue("message"); len(pasted) <= maxForm {
		f.Message = pasted
	}
	q, err := f.question(x.who)
	if err == nil {
		f.Tried = "the message"
		f.Result, err = x.answer(func(ctx context.Context, trace bool) (*check.Answer, error) {
			if trace {
				return nil, nil
			}
			m := check.MessageQuestion{Question: q, Name: "the message"}
			if f.From != "" {
				m.From = &f.From
			}
			return x.console.Check.Message(ctx, bytes.NewReader(message), m)
		})
	}
	return x.tried(f, err)
}

// message returns the message that was uploaded or pasted.
func (x *exchange) message() ([]byte, error) {
	message := []byte(x.r.PostFormValue("message"))
	if file, _, err := x.r.FormFile("file"); err == nil {
		defer file.Close()
		if message, err = io.ReadAll(io.LimitReader(file, maxTried+1)); err != nil {
			return nil, err
		}
	}
	switch {
	case len(message) > maxTried:
		return nil, failure{http.StatusRequestEntityTooLarge, "The message is larger than 10 MiB. Its header is enough."}
	case len(bytes.TrimSpace(message)) == 0:
		return nil, invalid("Paste a message with its header, or choose a file.")
	}
	return message, nil
}

// answer asks the engine, for the answer and for its trace. A nil answer is none.
func (x *exchange) answer(ask func(ctx context.Context, trace bool) (*check.Answer, error)) (*tried, error) {
	ctx, stop := context.WithTimeout(x.r.Context(), tryTime)
	defer stop()
	var long *check.Answer
	short, err := ask(ctx, false)
	if err == nil {
		long, err = ask(ctx, true)
	}
	if err != nil {
		return nil, checkFailure(err)
	}
	t := &tried{Action: short.Action, Listed: short.Listed, Text: printed(short)}
	if long != nil {
		t.Trace = printed(long)
	}
	return t, nil
}

// printed returns what an answer prints.
func printed(a *check.Answer) string {
	var b strings.Builder
	a.Print(&b)
	return b.String()
}

// checkFailure returns what the user sees of an error of the check engine: nearly all are about
// the question.
func checkFailure(err error) error {
	switch {
	case errors.Is(err, verdict.ErrNoAnswer), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return failure{http.StatusServiceUnavailable, sentence(err)}
	}
	return invalid(sentence(err))
}

// tried shows the page with a result, or what is wrong with the question.
func (x *exchange) tried(f *tryForm, err error) error {
	var shown failure
	switch {
	case errors.As(err, &shown):
		f.Problem, f.Result, x.status = shown.text, nil, shown.status
	case err != nil:
		return err
	}
	return x.showTry(f)
}

func (x *exchange) showTry(f *tryForm) error {
	return x.render("try", view{Title: "Try", Nav: "/try", Data: f})
}
