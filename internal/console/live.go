package console

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"spamgate/internal/accounts"
	"spamgate/internal/decisions"
	"spamgate/internal/fleetsearch"
)

const (
	liveStep  = 500 * time.Millisecond // between batches of rows
	liveBatch = 50                     // rows; of more the newest count
	liveCheck = 10 * time.Second       // whether the session has ended, also before each batch
	liveWrite = 20 * time.Second       // for a batch, else the browser is gone
)

// live is the live view of a browser.
type live struct {
	*exchange
	query   decisions.Query
	waiting []decisions.Decision // the oldest first
	skipped int                  // rows before these that are not shown
}

// mailEvents sends new rows that a search finds as server-sent events, with the HTML of the
// page's table. It begins with those since the page was made or the last row that the browser
// has.
func (x *exchange) mailEvents() error {
	s, recorder := x.mailSearch(), x.console.recorder()
	switch {
	case s.Problem != "":
		return invalid(s.Problem)
	case recorder == nil || !x.console.keepsHistory():
		return errNotFound
	}
	leave, ok := x.console.streams.enter(x.who.Name)
	if !ok {
		return errTooManyStreams
	}
	defer leave()
	rows, stop := recorder.Subscribe()
	defer stop()
	l := &live{exchange: x, query: s.query}
	if err := l.catchUp(x.liveSince()); err != nil {
		return err
	}
	x.leave() // it has a place among the live views
	x.w.Header().Set("Content-Type", "text/event-stream")
	x.w.Header().Set("X-Accel-Buffering", "no") // of nginx
	l.run(rows)
	return nil
}

// catchUp takes the rows of the history since a time.
func (l *live) catchUp(since time.Time) error {
	q := l.query
	q.Before, q.Limit = "", liveBatch
	if q.Since.Before(since) {
		q.Since = since
	}
	page, err := l.console.History.Find(l.r.Context(), q)
	if err != nil {
		return err
	}
	slices.Reverse(page.Decisions)
	l.waiting = page.Decisions
	return nil
}

// run sends rows until the browser, the session or the console ends.
func (l *live) run(rows <-chan decisions.Decision) {
	step, check := time.NewTicker(liveStep), time.NewTicker(liveCheck)
	defer step.Stop()
	defer check.Stop()
	sent := l.send("retry: 2000\n\n")
	for sent {
		select {
		case <-l.r.Context().Done():
			return
		case <-l.console.ending.Done():
			return
		case d, open := <-rows:
			if !open {
				return
			}
			l.take(d)
		case <-step.C:
			sent = l.flush()
		case <-check.C:
			if !l.stillAllowed() {
				return
			}
			sent = l.send(": still here\n\n")
		}
	}
}

// take keeps a row that the search finds.
func (l *live) take(d decisions.Decision) {
	if !l.query.Match(&d) || !l.query.Cut(&d) {
		return
	}
	if len(l.waiting) == liveBatch {
		l.waiting = l.waiting[1:]
		l.skipped++
	}
	l.waiting = append(l.waiting, d)
}

// flush sends the rows that wait, the newest first, as one event. Nothing goes to a browser whose
// session has ended.
func (l *live) flush() bool {
	if len(l.waiting) == 0 {
		return true
	}
	if !l.stillAllowed() {
		return false
	}
	last := l.waiting[len(l.waiting)-1].Time
	slices.Reverse(l.waiting)
	var html bytes.Buffer
	if err := l.console.pages["mail"].ExecuteTemplate(&html, "rows", l.rows()); err != nil {
		l.console.Logger.Error("console page failed", "path", l.r.URL.Path, "error", err)
		return false
	}
	var event strings.Builder
	if l.skipped > 0 {
		fmt.Fprintf(&event, "event: skipped\ndata: %d\n\n", l.skipped)
	}
	fmt.Fprintf(&event, "id: %s\nevent: rows\n", last.UTC().Format(time.RFC3339Nano))
	for line := range strings.Lines(html.String()) {
		if line = strings.TrimSpace(line); line != "" {
			event.WriteString("data: " + strings.ReplaceAll(line, "\r", " ") + "\n")
		}
	}
	event.WriteString("\n")
	l.waiting, l.skipped = l.waiting[:0], 0
	return l.send(event.String())
}

// rows returns the rows that wait, which are of this gate.
func (l *live) rows() []mailRow {
	gate := ""
	if l.console.inFleet() {
		gate = l.console.gateName()
	}
	all := make([]fleetsearch.Decision, len(l.waiting))
	for i, d := range l.waiting {
		all[i] = fleetsearch.Decision{Gate: gate, Decision: d}
	}
	return l.mailRows(all)
}

// send writes to the browser. It reports whether that was possible.
func (l *live) send(text string) bool {
	l.extend(liveWrite)
	if _, err := l.w.Write([]byte(text)); err != nil {
		return false
	}
	return http.NewResponseController(l.w).Flush() == nil
}

// stillAllowed reports whether the account may still see these rows.
func (l *live) stillAllowed() bool {
	if !l.sso {
		return l.console.Accounts.Alive(l.cookie) // a change of the account ends its sessions
	}
	before := l.who
	in, err := l.authenticate()
	return err == nil && in && l.who.MaySome(accounts.SeeMail) && slices.Equal(before.Domains, l.who.Domains)
}
