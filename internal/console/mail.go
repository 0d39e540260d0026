package console

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"time"

	"spamgate/internal/accounts"
	"spamgate/internal/decisions"
)

var mailRoutes = []route{
	{"GET", "/mail", accounts.SeeMail, (*exchange).mail},
	{"GET", "/mail.csv", accounts.SeeMail, (*exchange).mailCSV},
	{"GET", "/mail/events", accounts.SeeMail, (*exchange).mailEvents},
	{"GET", "/mail/{id}", accounts.SeeMail, (*exchange).story},
}

// mailPage is what the page of the search shows.
type mailPage struct {
	Search  *mailSearch
	Done    *notice
	Actions []option
	Spans   []option
	Lists   []string // by name

	Rows       []mailRow
	Bound      bool       // the account sees its recipients' part only
	Reach      *time.Time // nil: the history is empty
	Incomplete bool
	Stands     bool // the newest decisions are not in the history
	Off        bool // there is no history
	Record     string

	Newest, Older string // paths of other pages of rows
	CSV, Events   string // paths
}

func (x *exchange) mail() error {
	s := x.mailSearch()
	p := mailPage{
		Search: s, Actions: actionOptions(), Spans: searchSpans, Bound: x.who.Domains != nil,
		Off: x.console.History == nil, Record: x.console.Config().Decisions.Record,
	}
	if x.who.May(accounts.SeeLists) {
		for _, l := range x.console.Config().Lists {
			p.Lists = append(p.Lists, l.Name)
		}
	}
	if s.Problem != "" {
		x.status = http.StatusBadRequest
	} else if !p.Off {
		if err := x.findMail(&p); err != nil {
			return err
		}
	}
	var err error
	if p.Done, err = x.notice(); err != nil {
		return err
	}
	return x.render("mail", view{Title: "Mail", Nav: "/mail", Data: p})
}

// findMail fills in the rows. A search for an id that exists goes to the message itself.
func (x *exchange) findMail(p *mailPage) error {
	s := p.Search
	found, err := x.console.History.Find(x.r.Context(), s.query)
	if errors.Is(err, decisions.ErrCursor) {
		return invalid("The address of this page is damaged: begin the search again.")
	}
	if err != nil {
		return err
	}
	if r := x.console.recorder(); r != nil {
		p.Stands = r.Stats().Err != ""
	}
	p.Rows, p.Reach, p.Incomplete = x.mailRows(found.Decisions), found.Reach, found.Incomplete
	values := s.values()
	if s.query.Before != "" {
		p.Newest = mailPath("/mail", values)
	}
	if found.Next != "" {
		values.Set("before", string(found.Next))
		p.Older = mailPath("/mail", values)
		values.Del("before")
	}
	p.CSV = mailPath("/mail.csv", values)
	if s.query.Before == "" && x.console.recorder() != nil {
		values.Set("from", x.console.Now().UTC().Format(time.RFC3339Nano))
		p.Events = mailPath("/mail/events", values)
	}
	return nil
}

// mailPath returns a path with a query.
func mailPath(path string, v url.Values) string {
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

const (
	maxCSV     = 100_000 // rows
	csvAtOnce  = 2
	csvMinutes = 10 // for a download
)

// errEnoughRows ends an export that has enough rows.
var errEnoughRows = errors.New("enough rows")

// mailCSV answers with all decisions that a search finds, as far as maxCSV.
func (x *exchange) mailCSV() error {
	s := x.mailSearch()
	switch {
	case s.Problem != "":
		return invalid(s.Problem)
	case x.console.History == nil:
		return errNotFound
	}
	leave, ok := x.console.downloads.enter(x.who.Name)
	if !ok {
		return failure{http.StatusTooManyRequests, "Other downloads are under way. Try again when they have ended."}
	}
	defer leave()
	x.leave() // it has a place among the downloads
	x.extend(csvMinutes * time.Minute)
	name := "mail-" + x.console.Now().Format("20060102-150405") + ".csv"
	x.w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	x.w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	rows := 0
	out := decisions.NewCSV(x.w)
	s.query.Before, s.query.Limit = "", 0
	err := x.console.History.Each(x.r.Context(), s.query, func(d decisions.Decision) error {
		if rows++; rows > maxCSV {
			return errEnoughRows
		}
		return out.Write(d)
	})
	if err == nil || errors.Is(err, errEnoughRows) {
		err = out.Flush()
	}
	if err != nil {
		x.console.Logger.Warn("console download ended early", "user", x.who.Name, "error", err)
		panic(http.ErrAbortHandler) // so that the browser does not take a part for the whole
	}
	return nil
}

// extend gives an answer that is long more time.
func (x *exchange) extend(d time.Duration) {
	_ = http.NewResponseController(x.w).SetWriteDeadline(time.Now().Add(d)) // a recorder in a test has no deadline
}

// errTooManyStreams says that an account has too many live views.
var errTooManyStreams = failure{http.StatusTooManyRequests, fmt.Sprintf("There are too many live views: at most %d for an account. Close one.", streamsEach)}
