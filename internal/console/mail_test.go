package console

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"spamgate/internal/decisions"
)

// hostile is text that strangers send.
const hostile = "\"><script>alert(1)</script>'<img src=x onerror=alert(1)>{{.}}\u202e\x00\x1b[31m"

func TestMailPage(t *testing.T) {
	p := newParts(t, "")
	admin := login(t, p.Console, "admin")
	wantText(t, visit(t, p.Console, admin, "/mail", 200), "Nothing has been recorded yet.")

	accepted := refusal("ACCEPTEDAAAA", 3*time.Minute)
	accepted.Event, accepted.Action, accepted.List, accepted.Entry, accepted.Reason = "refused by the next hop", "accept", "", "", ""
	accepted.Reply, accepted.Sender, accepted.Client = "550 5.1.1 unknown", "ann@example.net", "[2001:db8::1]:25"
	flood := refusal("FLOODAAAAAAA", 2*time.Minute)
	flood.Count, flood.Last = 1204, time.Now()
	header := refusal("HEADERAAAAAA", time.Minute)
	header.Sender, header.HeaderSenders, header.Recipients = "ann@list.example", []string{"News@Shop.example"}, []string{"a@b.example", "b@b.example", "c@b.example", "d@c.example"}
	header.Attrs = []decisions.Attr{{Key: "identity", Value: "From"}, {Key: "sender", Value: "news@shop.example"}}
	p.record(accepted, flood, header)

	body := visit(t, p.Console, admin, "/mail", 200)
	wantText(t, body, "HEADERAAAAAA", "header: ", "and 1 more", "× 1,204", "refused by the server", "list blocked has spam.example (unsolicited mail)", "The history reaches back to", "It has no mail that was accepted as usual.")
	if positions := []int{strings.Index(body, "HEADERAAAAAA"), strings.Index(body, "FLOODAAAAAAA"), strings.Index(body, "ACCEPTEDAAAA")}; !slices.IsSorted(positions) {
		t.Errorf("rows are not in the order of time: %v", positions)
	}
	want := "/entry/new?id=HEADERAAAAAA&sender=news%40shop.example&show=1&type=allow"
	if n := strings.Count(body, "Let in…"); n != 2 || linkTo(body, want) != want {
		t.Errorf("%d rows offer to let in, want the two refused ones; links: %q", n, links(body))
	}
	for query, found := range map[string]string{
		"q=floodaaaaaaa":                       "FLOOD",
		"q=550 5.7.1 refused; id FLOODAAAAAAA": "FLOOD",
		"q=Ann@Example.net":                    "ACCEPTED",
		"q=c@b.example":                        "HEADER",
		"q=shop.example":                       "HEADER",
		"q=@spam.example":                      "FLOOD",
		"q=2001:db8::1":                        "ACCEPTED",
		"q=[2001:db8::1]:25":                   "ACCEPTED",
		"q=203.0.113.7:40596":                  "FLOOD HEADER",
		"client=203.0.113.7:1":                 "FLOOD HEADER",
		"q=<Ann@example.net>":                  "ACCEPTED",
		"q=Ann Other <ann@example.net>":        "ACCEPTED",
		"q=mailto:ann@example.net":             "ACCEPTED",
		"q=MAILTO:ann@example.net?subject=x":   "ACCEPTED",
		"sender=Ann <mailto:ann@example.net>":  "ACCEPTED",
		"recipient=\"D, C\" <d@c.example>":     "HEADER",
		"q=blocked":                            "FLOOD HEADER",
		"action=accept":                        "ACCEPTED",
		"sender=news@shop.example":             "HEADER",
		"recipient=<d@c.example>":              "HEADER",
		"domain=example.net":                   "ACCEPTED",
		"list=blocked":                         "FLOOD HEADER",
		"client=203.0.113.7":                   "FLOOD HEADER",
		"id=headeraaaaaa&since=1h":             "HEADER",
		"q=nobody@example.org":                 "Nothing found",
	} {
		path := "/mail?" + strings.NewReplacer(" ", "+", "@", "%40", "<", "%3C", ">", "%3E", ";", "%3B", "?", "%3F", "\"", "%22").Replace(query)
		text := plainText(visit(t, p.Console, admin, path, 200))
		for _, id := range []string{"ACCEPTED", "FLOOD", "HEADER"} {
			if strings.Contains(text, id+"A") != strings.Contains(found, id) {
				t.Errorf("%s: want %s:\n%s", query, found, text)
			}
		}
		if strings.HasPrefix(found, "N") && !strings.Contains(text, found) {
			t.Errorf("%s lacks %q", query, found)
		}
	}
}

func TestMailProblems(t *testing.T) {
	p := newParts(t, "")
	admin := login(t, p.Console, "admin")
	for query, want := range map[string]string{
		"q=nonsense":                        "is not an address, a domain",
		"q=a@b@":                            "is not an address",
		"sender=nonsense":                   "is not an address",
		"domain=a..b":                       "is not a domain",
		"client=mail.example":               "is not an IP address",
		"id=short":                          "is not an id",
		"action=kill":                       "is not an action",
		"since=soon":                        "is not a time",
		"since=2999-01-01":                  "still to come",
		"q=" + strings.Repeat("a", 1001):    "more than",
		"list=" + strings.Repeat("a", 1001): "more than",
	} {
		body := visit(t, p.Console, admin, "/mail?"+query, 400)
		wantText(t, body, want, "!The history reaches")
		response, _ := ask(p.Console, with(get("/mail.csv?"+query), admin))
		if response.StatusCode != 400 {
			t.Errorf("CSV of %s: %s", query, response.Status)
		}
	}
	wantText(t, visit(t, p.Console, admin, "/mail?before=nonsense", 400), "begin the search again")
}

// TestMailPaging follows the pages while rows are added.
func TestMailPaging(t *testing.T) {
	p := newParts(t, "")
	admin := login(t, p.Console, "admin")
	const n = 2*pageRows + 10
	for i := range n {
		p.record(numbered(i, time.Duration(n-i)*time.Minute))
	}
	seen := map[string]bool{}
	for path, page := "/mail?list=blocked", 0; path != ""; page++ {
		body := visit(t, p.Console, admin, path, 200)
		for i := range n {
			id := numbered(i, 0).ID
			if strings.Contains(body, id) {
				if seen[id] {
					t.Errorf("%s is on two pages", id)
				}
				seen[id] = true
			}
		}
		if (linkTo(body, "/mail?list=blocked") != "") != (page > 0) {
			t.Errorf("page %d: links %q", page, links(body))
		}
		path = linkTo(body, "/mail?before=")
		p.record(refusal(fmt.Sprintf("LATER%07d", page), 0))
	}
	if len(seen) != n {
		t.Errorf("%d of %d rows", len(seen), n)
	}
}

// numbered returns a row with a number in its ID.
func numbered(i int, ago time.Duration) decisions.Decision {
	letters := "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	d := refusal("NUMBER"+string([]byte{letters[i/26/26], letters[i/26%26], letters[i%26]})+"QQQ", ago)
	d.Sender = fmt.Sprintf("x%d@mail.spam.example", i)
	return d
}

// TestMailOfBound checks that an account that is bound to domains sees nothing of others.
func TestMailOfBound(t *testing.T) {
	p := newParts(t, "")
	bound := login(t, p.Console, "bound")
	theirs, both, others := refusal("THEIRSAAAAAA", 3*time.Minute), refusal("QBOTHAAAAAAA", 2*time.Minute), refusal("OTHERSAAAAAA", time.Minute)
	both.Recipients = []string{"ann@b.example", "secret@c.example"}
	others.Recipients = []string{"secret@c.example"}
	p.record(theirs, both, others)
	for _, path := range []string{"/mail", "/mail?q=x@mail.spam.example", "/mail?list=blocked", "/mail/QBOTHAAAAAAA", "/mail.csv"} {
		_, body := ask(p.Console, with(get(path), bound))
		wantText(t, body, "QBOTH", "ann@b.example", "!secret", "!OTHERS")
	}
	wantText(t, visit(t, p.Console, bound, "/mail/OTHERSAAAAAA", 404), "nothing about this id and your recipients")
	wantText(t, visit(t, p.Console, bound, "/mail?q=secret@c.example", 200), "Nothing found")
	visit(t, p.Console, bound, "/now", 403)
}

// TestMailShownDifferently checks the modes of [log] addresses.
func TestMailShownDifferently(t *testing.T) {
	for mode, want := range map[string]struct{ byDomain, byAddress, sender string }{
		"hash":   {"search for a whole address", "SHOWNAAAAAAA", ""},
		"domain": {"SHOWNAAAAAAA", "may be somebody else's", "*@mail.spam.example"},
	} {
		p := newParts(t, fmt.Sprintf("[log]\naddresses = %q\n", mode))
		admin := login(t, p.Console, "admin")
		d := refusal("SHOWNAAAAAAA", time.Minute)
		d.Sender, d.Recipients[0] = p.Show(d.Sender), p.Show(d.Recipients[0])
		p.record(d)
		body := visit(t, p.Console, admin, "/mail", 200)
		wantText(t, body, want.sender, "!x@mail", "!Let in")
		_, body = ask(p.Console, with(get("/mail?domain=mail.spam.example"), admin))
		wantText(t, body, want.byDomain)
		wantText(t, visit(t, p.Console, admin, "/mail?q=X@mail.spam.example", 200), "SHOWNAAAAAAA", want.byAddress)
		wantText(t, visit(t, p.Console, admin, "/mail/SHOWNAAAAAAA", 200), "does not show the sender", "!Let in", "!Block")
	}
}

func TestMailCSV(t *testing.T) {
	p := newParts(t, "")
	admin := login(t, p.Console, "admin")
	formula := refusal("FORMULAAAAAA", time.Minute)
	formula.Helo, formula.Reason = `=HYPERLINK("http://evil.example")`, hostile
	p.record(formula, refusal("SECONDAAAAAA", 0))
	response, body := ask(p.Console, with(get("/mail.csv?list=blocked"), admin))
	if response.StatusCode != 200 || !strings.HasPrefix(response.Header.Get("Content-Type"), "text/csv") || !strings.HasPrefix(response.Header.Get("Content-Disposition"), "attachment; filename=mail-") {
		t.Errorf("%s %v", response.Status, response.Header)
	}
	rows, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	if err != nil || len(rows) != 3 || !slices.Contains(rows[2], "FORMULAAAAAA") {
		t.Fatalf("%v: %q", err, body)
	}
	for _, row := range rows {
		for _, cell := range row {
			if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
				t.Errorf("a formula: %q", cell)
			}
		}
	}
}

// TestHostileMail shows hostile text on every page that has it.
func TestHostileMail(t *testing.T) {
	p := newParts(t, "")
	admin := login(t, p.Console, "admin")
	d := refusal("HQSTQLEAAAAA", time.Minute)
	d.Helo, d.Sender, d.Client, d.MessageID, d.Reason, d.Entry, d.Reply, d.Event = hostile, hostile, hostile, hostile, hostile, hostile, hostile, hostile
	d.List, d.Door, d.Listener, d.Action = hostile, hostile, hostile, hostile
	d.Recipients, d.HeaderSenders = []string{hostile, hostile + "2"}, []string{hostile}
	d.Attrs = []decisions.Attr{{Key: hostile, Value: hostile}, {Key: "sender", Value: hostile}, {Key: "tls", Value: hostile}}
	p.record(d)
	for _, path := range []string{
		"/mail", "/mail/HQSTQLEAAAAA", "/now", "/now?range=" + url.QueryEscape(hostile), "/mail?list=" + url.QueryEscape(hostile),
	} {
		body := visit(t, p.Console, admin, path, 200)
		if strings.Contains(body, "<script>a") || strings.Contains(body, "<img src=x") || strings.ContainsAny(body, "\u202e\x00\x1b") {
			i := strings.IndexAny(body, "\u202e\x00\x1b")
			t.Errorf("%s has hostile text as it is: %q", path, body[max(0, i-200):max(0, i)+100])
		}
	}
	for _, field := range append(searchFields, "before") {
		response, body := ask(p.Console, with(get("/mail?"+field+"="+url.QueryEscape(hostile)), admin))
		if response.StatusCode >= 500 {
			t.Errorf("%s: %s", field, response.Status)
		}
		if err := checkHTML(body); err != nil || strings.Contains(body, "<script>a") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// TestMailWithoutHistory turns the history off, as a reload can, and has none that could be opened.
func TestMailWithoutHistory(t *testing.T) {
	for what, end := range map[string]func(*parts){
		"keep is 0":      func(p *parts) { p.config.Decisions.Keep, p.Recorder = 0, nil },
		"cannot be read": func(p *parts) { p.History, p.Recorder = nil, nil },
	} {
		t.Run(what, func(t *testing.T) {
			p := newParts(t, "")
			admin, token := login(t, p.Console, "admin"), addToken(t, p.Console)
			end(p)
			wantText(t, visit(t, p.Console, admin, "/mail", 200), "The gate keeps no history")
			wantText(t, visit(t, p.Console, admin, "/mail/2ZFPDJSVUUAR", 404), "The gate keeps no history")
			wantText(t, visit(t, p.Console, admin, "/now", 200), "No numbers", "The gate keeps none.")
			wantText(t, visit(t, p.Console, admin, fill("type", "allow", "sender", "x@a.example", "whom", "all", "until", "1h", "show", "1"), 200), "There is no history of decisions")
			for _, path := range []string{"/mail.csv", "/mail/events"} {
				if response, _ := ask(p.Console, with(get(path), admin)); response.StatusCode != http.StatusNotFound {
					t.Errorf("%s: %s", path, response.Status)
				}
			}
			for _, path := range []string{"decisions", "decisions/top?by=senders", "totals"} {
				response, body := ask(p.Console, bearing(get("/api/v1/"+path), token))
				if response.StatusCode != http.StatusNotFound || !strings.Contains(body, "keeps no history") {
					t.Errorf("%s: %s %s", path, response.Status, body)
				}
			}
		})
	}
}

// TestTopReach says in the API how far back the history reaches.
func TestTopReach(t *testing.T) {
	p := newParts(t, "")
	token := addToken(t, p.Console)
	for _, path := range []string{"decisions", "decisions/top?by=senders"} {
		if _, body := ask(p.Console, bearing(get("/api/v1/"+path), token)); strings.Contains(body, "reaches_back_to") {
			t.Errorf("%s of an empty history: %s", path, body)
		}
	}
	oldest := refusal("OLDESTAAAAAA", time.Hour)
	p.record(oldest, refusal("NEWESTAAAAAA", time.Minute))
	for _, path := range []string{"decisions", "decisions/top?by=senders"} {
		var got struct {
			Reach time.Time `json:"reaches_back_to"`
		}
		_, body := ask(p.Console, bearing(get("/api/v1/"+path), token))
		if err := json.Unmarshal([]byte(body), &got); err != nil || !got.Reach.Equal(oldest.Time) {
			t.Errorf("%s: %v, want %v: %s", path, err, oldest.Time, body)
		}
	}
}

// FuzzMail searches with any query.
func FuzzMail(f *testing.F) {
	for _, field := range searchFields {
		f.Add(field + "=" + url.QueryEscape(hostile))
	}
	f.Add("q=ann%40example.net&action=reject&since=7d&before=x")
	f.Add("q=%zz&q=2&since=-1h&limit=0")
	p := newParts(f, "")
	p.record(refusal("FUZZAAAAAAAA", time.Minute))
	admin := login(f, p.Console, "admin")
	f.Fuzz(func(t *testing.T, query string) {
		r := get("/mail")
		r.URL.RawQuery = query
		response, body := ask(p.Console, with(r, admin))
		if response.StatusCode != 200 && response.StatusCode != 400 {
			t.Fatalf("%q: %s\n%s", query, response.Status, body)
		}
		if err := checkHTML(body); err != nil {
			t.Fatalf("%q: %v\n%s", query, err, body)
		}
	})
}

// TestMailStandsStill says that rows are missing while the history cannot be written.
func TestMailStandsStill(t *testing.T) {
	p := newParts(t, "")
	recorder := p.Console.recorder()
	totals := filepath.Join(p.config.State.Dir, "decisions", "totals.db")
	if err := errors.Join(recorder.Sync(t.Context()), os.RemoveAll(totals), os.Mkdir(totals, 0o700)); err != nil {
		t.Fatal(err)
	}
	recorder.Record(&decisions.Decision{Time: time.Now(), Event: "refused", Sender: "x@spam.example"})
	for recorder.Stats().Err == "" {
		_ = recorder.Sync(t.Context())
	}
	viewer := login(t, p.Console, "viewer")
	wantText(t, visit(t, p.Console, viewer, "/mail", 200), "the history stands still")
	if err := os.Remove(totals); err != nil {
		t.Fatal(err)
	}
	for recorder.Stats().Err != "" {
		_ = recorder.Sync(t.Context())
	}
	wantText(t, visit(t, p.Console, viewer, "/mail", 200), "!the history stands still")
}
