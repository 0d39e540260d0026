package fleetsearch

import (
	"maps"
	"regexp"
	"slices"
	"time"

	"spamgate/internal/decisions"
)

// Answers collects what gates have answered to a question.
type Answers struct {
	question *Question
	from     cursor
	now      time.Time
	pages    map[string]decisions.Page
	errors   map[string]string
}

// Collect returns the collection for a question; the error is ErrCursor.
func (q *Question) Collect(now time.Time) (*Answers, error) {
	from, err := parseCursor(q.Before)
	return &Answers{question: q, from: from, now: now, pages: map[string]decisions.Page{}, errors: map[string]string{}}, err
}

// Own adds what the gate that asks has found in its own history.
func (a *Answers) Own(name string, page decisions.Page, err error) {
	if err != nil {
		a.Failed(name, err)
		return
	}
	a.pages[name] = page
}

// gateName matches the names that gates have: see config.Fleet.
var gateName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)

// ValidName reports whether a gate may have a name.
func ValidName(name string) bool { return gateName.MatchString(name) }

// Add adds the answer of another gate.
func (a *Answers) Add(name string, answer []byte) {
	if !ValidName(name) {
		a.errors[name] = "not the name of a gate"
		return
	}
	page, err := a.question.read(answer, a.now)
	a.Own(name, page, err)
}

// Failed notes that a gate could not answer.
func (a *Answers) Failed(name string, err error) { a.errors[name] = err.Error() }

// Page merges the answers. Missing are the gates that have not answered.
func (a *Answers) Page(missing []string) Page {
	p := Page{Decisions: []Decision{}, Gates: slices.Sorted(maps.Keys(a.pages)), Missing: missing, Errors: a.errors}
	taken := map[string]int{}
	for len(p.Decisions) < a.question.limit() {
		name, ok := a.newest(p.Gates, taken)
		if !ok {
			break
		}
		p.Decisions = append(p.Decisions, Decision{name, a.pages[name].Decisions[taken[name]]})
		taken[name]++
	}
	for _, name := range p.Gates {
		p.sum(name, a.pages[name], taken[name] == len(a.pages[name].Decisions))
	}
	if p.Next = a.next(taken, p.Decisions); len(p.Next) > MaxCursor {
		p.Next, p.Incomplete = "", true
	}
	return p
}

// newest returns the gate whose next decision is the newest. It reports false if there is none, or
// if it is not known, since a gate has more than it was asked for.
func (a *Answers) newest(names []string, taken map[string]int) (newest string, ok bool) {
	var instant time.Time
	for _, name := range names {
		page := a.pages[name]
		if taken[name] == len(page.Decisions) {
			if page.Next != "" && len(page.Decisions) == a.question.rows() {
				return "", false
			}
			continue
		}
		if t := page.Decisions[taken[name]].Time; !ok || t.After(instant) {
			newest, instant, ok = name, t, true
		}
	}
	return newest, ok
}

// sum adds what a gate says about its search. Taken says that the page has all of its decisions.
func (p *Page) sum(name string, page decisions.Page, taken bool) {
	p.Incomplete = p.Incomplete || page.Incomplete && taken
	if page.Fault != "" {
		if p.Fault != "" {
			p.Fault += "; "
		}
		p.Fault += name + ": " + page.Fault
	}
	if page.Reach != nil && (p.Reach == nil || page.Reach.Before(*p.Reach)) {
		p.Reach = page.Reach
	}
}

// next returns the cursor after the decisions of a page.
func (a *Answers) next(taken map[string]int, shown []Decision) decisions.Cursor {
	next := cursor{At: map[string]decisions.Cursor{}, Until: a.from.Until}
	maps.Copy(next.At, a.from.At)
	for name, page := range a.pages {
		if n := taken[name]; n < len(page.Decisions) {
			next.At[name] = page.Places[n]
		} else {
			next.At[name] = page.Next
		}
	}
	if len(shown) > 0 {
		next.Until = shown[len(shown)-1].Time.UnixNano() + 1
	}
	for _, pos := range next.At {
		if pos != "" {
			return next.encode()
		}
	}
	return ""
}
