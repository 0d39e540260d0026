package console

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"

	"spamgate/internal/accounts"
	"spamgate/internal/decisions"
	"spamgate/internal/fleetsearch"
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

	Gate  string            // of this gate in its fleet; "" for none
	Gates []option          // that can be chosen
	Asked *fleetsearch.Page // nil: only this gate's history was searched

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
		Off: x.historyOff(s.Fields["gate"]), Record: x.console.Config().Decisions.Record,
	}
	if x.console.inFleet() {
		p.Gate = x.console.gateName()
		p.Gates = gateOptions(p.Gate, s.Fields["gate"])
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
	found, err := x.findDecisions(s.query, s.Fields["gate"])
	if errors.Is(err, decisions.ErrCursor) {
		return invalid("The address of this page is damaged: begin the search again.")
	}
	if err != nil {
		return err
	}
	if r := x.console.recorder(); r != nil {
		p.Stands = r.Stats().Err != ""
	}
	p.Stands = p.Stands || found.Fault != ""
	p.Asked = asked(&found)
	p.Rows, p.Reach, p.Incomplete = x.mailRows(found.Decisions), found.Reach, found.Incomplete
	values := fieldValues(s.Fields)
	if s.query.Before != "" {
		p.Newest = mailPath("/mail", values)
	}
	if found.Next != "" {
		values.Set("before", string(found.Next))
		p.Older = mailPath("/mail", values)
		values.Del("before")
	}
	p.CSV = mailPath("/mail.csv", values)
	if s.query.Before == "" && x.console.recorder() != nil && x.isHere(s.Fields["gate"]) {
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
	case x.historyOff(s.Fields["gate"]):
		return errNotFound
	}
	leave, ok := x.console.downloads.enter(x.who.Name)
	if !ok {
		return failure{http.StatusTooManyRequests, "Other downloads are under way. Try again when they have ended."}
	}
	defer leave()
	x.leave() // it has a place among the downloads
	x.extend(csvMinutes * time.Minute)
	s.query.Before, s.query.Limit = "", 0
	export, err := x.export(s)
	if err != nil {
		return err
	}
	name := "mail-" + x.console.Now().Format("20060102-150405") + ".csv"
	x.w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	x.w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	if err := export(x.w); err != nil {
		x.console.Logger.Warn("console download ended early", "user", x.who.Name, "error", err)
		panic(http.ErrAbortHandler) // so that the browser does not take a part for the whole
	}
	return nil
}

// export returns what writes what a search finds. The error is one that the user can be told before
// anything is written.
func (x *exchange) export(s *mailSearch) (func(io.Writer) error, error) {
	gate := s.Fields["gate"]
	if !x.console.inFleet() || gate == x.console.gateName() {
		return func(w io.Writer) error { return x.exportOwn(w, s.query) }, nil
	}
	q := s.query
	q.Limit = fleetsearch.MaxRows
	first, err := x.exportPage(q, gate)
	return func(w io.Writer) error { return x.exportFleet(w, q, gate, first) }, err
}

// exportOwn writes decisions of this gate.
func (x *exchange) exportOwn(w io.Writer, q decisions.Query) error {
	rows, out := 0, decisions.NewCSV(w)
	err := x.console.History.Each(x.r.Context(), q, func(d decisions.Decision) error {
		if rows++; rows > maxCSV {
			return errEnoughRows
		}
		return out.Write(d)
	})
	if err == nil || errors.Is(err, errEnoughRows) {
		err = out.Flush()
	}
	return err
}

// exportFleet writes decisions of the gates of the fleet, from a first page on.
func (x *exchange) exportFleet(w io.Writer, q decisions.Query, gate string, page fleetsearch.Page) (err error) {
	rows, out := 0, decisions.NewCSV(w, "gate")
	for {
		for _, d := range page.Decisions {
			if rows++; rows > maxCSV {
				return out.Flush()
			}
			if err := out.Write(d.Decision, d.Gate); err != nil {
				return err
			}
		}
		if page.Next == "" {
			return out.Flush()
		}
		q.Before = page.Next
		if page, err = x.exportPage(q, gate); err != nil {
			return err
		}
	}
}

// exportPage returns a page that has the answers of all gates.
func (x *exchange) exportPage(q decisions.Query, gate string) (fleetsearch.Page, error) {
	page, err := x.findFleet(x.r.Context(), q, gate)
	if err == nil && !page.Whole() {
		err = failure{http.StatusServiceUnavailable, "Not all gates of the fleet have answered. Try again, or download the mail of one gate."}
	}
	return page, err
}

// extend gives an answer that is long more time.
func (x *exchange) extend(d time.Duration) {
	_ = http.NewResponseController(x.w).SetWriteDeadline(time.Now().Add(d)) // a recorder in a test has no deadline
}

// errTooManyStreams says that an account has too many live views.
var errTooManyStreams = failure{http.StatusTooManyRequests, fmt.Sprintf("There are too many live views: at most %d for an account. Close one.", streamsEach)}
