package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"spamgate/internal/decisions"
	"spamgate/internal/managed"
)

// fill returns the path of the form with fields.
func fill(fields ...string) string {
	q := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		q.Set(fields[i], fields[i+1])
	}
	return "/entry/new?" + q.Encode()
}

// submit returns the request that the button of a preview sends.
func submit(t *testing.T, body, why string) *http.Request {
	t.Helper()
	_, form, ok := strings.Cut(body, `<form method="post" action="/entry/new"`)
	if !ok {
		t.Fatalf("the page has no button to add the entry\n%s", mainOf(body))
	}
	form, _, _ = strings.Cut(form, "</form>")
	fields := []string{"why", why}
	for _, input := range strings.Split(form, `<input type="hidden" name="`)[1:] {
		name, rest, _ := strings.Cut(input, `"`)
		fields = append(fields, html.UnescapeString(name), between(rest, `value="`, `"`))
	}
	return post("/entry/new", fields...)
}

// TestLetIn shows what an entry changes, and adds it.
func TestLetIn(t *testing.T) {
	p := newTestLists(t, "", nil)
	p.change(t, "ann", "blocked", "spam.example", "unsolicited")
	p.change(t, "ann", "blocked", "worst@spam.example", "the worst")
	p.refused(
		decisions.Decision{ID: "A1", Sender: "x@spam.example", Recipients: []string{"ann@b.example"}, List: "blocked", Entry: "spam.example", Count: 5},
		decisions.Decision{ID: "A2", Sender: "x@spam.example", Recipients: []string{"ben@c.example"}, List: "blocked", Entry: "spam.example"},
		decisions.Decision{ID: "A3", Sender: "worst@spam.example", Recipients: []string{"ann@b.example"}, List: "blocked", Entry: "worst@spam.example"},
	)
	_, body := p.as("helpdesk", get(fill("type", "allow", "sender", "x@spam.example", "recipient", "ann@b.example", "id", "A1")), 200)
	wantAll(t, body, "only x@spam.example", "everyone at spam.example", "spam.example with all its subdomains", "only ann@b.example", "everybody at b.example", "a day", `href="/mail/A1"`)
	wantNone(t, body, "for good", "a month", `id="preview"`)

	_, body = p.as("helpdesk", get(fill("type", "allow", "sender", "x@spam.example", "what", "address", "whom", "all", "until", "1h", "id", "A1", "show", "1")), 200)
	wantAll(t, body, "<b>6 messages</b> of the last 7 days would have been accepted", "With this entry, the message that you came from passes.", "Let in x@spam.example for an hour", "5 times", "forged")
	p.as("helpdesk", submit(t, body, ""), 400)
	response, _ := p.as("helpdesk", submit(t, body, "a customer"), 303)
	to := response.Header.Get("Location")
	if !strings.HasPrefix(to, "/mail/A1?done=") {
		t.Errorf("after the change the browser goes to %s", to)
	}
	entries(t, p, "allowed", "x@spam.example")
	_, body = p.as("helpdesk", get("/lists?"+strings.SplitN(to, "?", 2)[1]), 200)
	wantAll(t, body, "added x@spam.example", "its sender has to send it again", "/undo/")

	_, body = p.as("helpdesk", get(fill("type", "allow", "sender", "x@spam.example", "what", "address", "whom", "all", "until", "1d", "show", "1")), 200)
	wantAll(t, body, "has this entry already, until")

	// An entry that does not help says what would.
	_, body = p.as("editor", get(fill("type", "allow", "sender", "worst@spam.example", "what", "below", "whom", "all", "until", "never", "id", "A3", "show", "1")), 200)
	wantAll(t, body, "Even with this entry, the message that you came from does not pass.", "worst@spam.example", "This would help:", "Do this instead")
	instead := between(body, `<li>Add worst@spam.example to the list allowed <a href="`, `"`)
	_, body = p.as("editor", get(instead), 200)
	wantAll(t, body, "With this entry, the message that you came from passes.", "It changes no other message of the last 7 days.", "Let in worst@spam.example")
	p.as("editor", submit(t, body, "a customer"), 303)
	entries(t, p, "allowed", "x@spam.example", "worst@spam.example")
}

// TestVerdict says what an entry does to mail that is delivered with a tag, or needs no entry.
func TestVerdict(t *testing.T) {
	p := newTestLists(t, "[[list]]\nname='doubtful'\npath='doubtful.txt'\naction='tag'\n", map[string]string{"doubtful.txt": "doubtful.example\n"})
	p.change(t, "ann", "blocked", "spam.example", "unsolicited")
	p.refused(
		decisions.Decision{ID: "T1", Sender: "x@doubtful.example", Recipients: []string{"ann@b.example"}, Size: 1},
		decisions.Decision{ID: "C1", Sender: "x@clean.example", Recipients: []string{"ann@b.example"}, Size: 1},
		decisions.Decision{ID: "S1", Sender: "x@spam.example", Recipients: []string{"ann@b.example"}, Size: 1},
	)
	for _, tt := range []struct{ kind, sender, id, class, want string }{
		{"allow", "x@doubtful.example", "T1", "done", "With this entry, the message that you came from is delivered without the tag."},
		{"allow", "y@doubtful.example", "T1", "problem", "Even with this entry, the message that you came from gets a tag.</b> It is delivered with a tag all the same: list doubtful has the entry doubtful.example."},
		{"allow", "x@clean.example", "C1", "notice", "The message that you came from passes without this entry, too."},
		{"allow", "x@spam.example", "S1", "done", "With this entry, the message that you came from passes."},
		{"block", "x@spam.example", "S1", "notice", "The message that you came from is stopped without this entry, too.</b> The lists refuse this mail already: list blocked has the entry spam.example."},
	} {
		_, body := p.as("editor", get(fill("type", tt.kind, "sender", tt.sender, "what", "address", "whom", "all", "until", "1h", "id", tt.id, "show", "1")), 200)
		wantAll(t, body, `<p class="`+tt.class+`" role="status"><b>`+tt.want)
	}
}

// entries wants these entries in a list.
func entries(t *testing.T, p *testLists, list string, want ...string) {
	t.Helper()
	_, text := p.as("viewer", get("/lists/"+list+"/export"), 200)
	var got []string
	for line := range strings.Lines(text) {
		if entry, _, _ := strings.Cut(strings.TrimSpace(line), " #"); entry != "" && entry[0] != '#' {
			got = append(got, strings.TrimSpace(entry))
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the list %s has %q, want %q", list, got, want)
	}
}

// TestEntryForms fills the form in each way.
func TestEntryForms(t *testing.T) {
	p := newTestLists(t, "", nil)
	for _, tt := range []struct {
		who, fields string
		status      int
		want        string
	}{
		{"editor", "type=allow&sender=x@a.example&what=address&whom=all&until=1h", 200, "Let in x@a.example for an hour"},
		{"editor", "type=allow&sender=X@A.Example&what=domain&whom=all&until=1d", 200, "Let in everyone at a.example for a day"},
		{"editor", "type=allow&sender=a.example&what=below&whom=all&until=30d", 200, "Let in a.example and its subdomains for a month"},
		{"editor", "type=allow&sender=*@a.example&what=domain&whom=all&until=never", 200, "Let in everyone at a.example for good"},
		{"editor", "type=block&sender=x@a.example&what=address&whom=all&until=date&date=2999-12-31", 200, "Block x@a.example until 2999-12-31"},
		{"editor", "type=allow&sender=x@a.example&whom=recipient&recipient=ann@b.example&until=1h", 200, "Let in x@a.example for ann@b.example for an hour"},
		{"editor", "type=allow&sender=x@a.example&whom=domain&recipient=ann@b.example&until=1h", 200, "Let in x@a.example for everybody at b.example for an hour"},
		{"editor", "type=allow&sender=<>&whom=all&until=1h", 200, "Let in bounces for an hour"},
		{"editor", "type=block&sender=<>&whom=all&until=1h", 200, "would all be refused"},
		{"editor", "type=allow&sender=x@[192.0.2.1]&what=domain&whom=all&until=1h", 200, "@[192.0.2.1]"},
		{"editor", "type=allow&sender=x@gmail.com&what=domain&whom=all&until=1h", 200, "large mail provider"},
		{"editor", "type=allow&sender=x@shop.github.io&what=address&whom=all&until=1h", 200, "Let in x@shop.github.io"},
		{"editor", "type=block&sender=x@protected.example&what=domain&whom=all&until=1h", 422, "protected"},
		{"editor", "type=block&sender=x@gmail.com&what=below&whom=all&until=1h", 422, "protected"},
		{"editor", "type=block&sender=x@a.example&whom=recipient&recipient=ann@b.example&until=1h", 200, "per_recipient = true"},
		{"editor", "type=allow&sender=&whom=all&until=1h", 400, "Write the address"},
		{"editor", "type=allow&sender=a.example&what=address&whom=all&until=1h", 200, "everyone at a.example"}, // no address can be chosen
		{"editor", "type=allow&sender=a+b+c&whom=all&until=1h", 400, "has no domain"},
		{"editor", "type=allow&sender=x@a.example&whom=recipient&recipient=nobody&until=1h", 400, "is not a recipient"},
		{"editor", "type=allow&sender=x@a.example&whom=recipient&recipient=&until=1h", 400, "Write the recipient"},
		{"editor", "type=allow&sender=x@a.example&whom=all&until=date&date=", 400, "Choose the day"},
		{"editor", "type=allow&sender=x@a.example&whom=all&until=date&date=2001-01-01", 400, "over already"},
		{"editor", "type=allow&sender=x@a.example&whom=all&until=date&date=tomorrow", 400, "is not a time"},
		{"helpdesk", "type=allow&sender=x@a.example&whom=all&until=never", 200, "for an hour"}, // it cannot choose that
		{"helpdesk", "type=block&sender=x@a.example&whom=all&until=1h", 403, "Your role does not permit this."},
		{"bound", "type=allow&sender=x@a.example&whom=all&until=1h&recipient=ann@b.example", 200, "Let in x@a.example for ann@b.example"},
		{"bound", "type=allow&sender=x@a.example&whom=recipient&recipient=ann@c.example&until=1h", 403, "Your account is for recipients at b.example"},
	} {
		_, body := p.as(tt.who, get("/entry/new?show=1&"+tt.fields), tt.status)
		if !strings.Contains(mainOf(body), html.EscapeString(tt.want)) {
			t.Errorf("%s, %s: the page lacks %q\n%s", tt.who, tt.fields, tt.want, mainOf(body))
		}
	}
	p.as("viewer", get("/entry/new?type=allow"), 403)
	p.as("helpdesk", post("/entry/new", "type", "block", "sender", "x@a.example", "whom", "all", "until", "1h", "why", "x"), 403)
	p.as("viewer", post("/entry/new", "type", "allow", "sender", "x@a.example", "why", "x"), 403)
	entries(t, p, "allowed")
	entries(t, p, "blocked")
}

// TestEntryRules posts what the forms do not offer.
func TestEntryRules(t *testing.T) {
	p := newTestLists(t, "", nil)
	for _, tt := range []struct {
		who    string
		fields []string
		status int
	}{
		{"helpdesk", []string{"type", "allow", "sender", "x@a.example", "whom", "all", "until", "never"}, 303}, // for a day
		{"helpdesk", []string{"type", "allow", "sender", "x@a.example", "whom", "all", "until", "date", "date", "2999-12-31"}, 303},
		{"bound", []string{"type", "allow", "sender", "y@a.example", "whom", "recipient", "recipient", "ann@c.example", "until", "1h"}, 403},
		{"bound", []string{"type", "allow", "sender", "y@a.example", "whom", "all", "list", "allowed", "until", "1h", "recipient", "ann@b.example"}, 303},
		{"bound", []string{"type", "block", "sender", "y@a.example", "whom", "all", "list", "blocked", "until", "1h"}, 409}, // no list by recipient
		{"editor", []string{"type", "block", "sender", "y@a.example", "whom", "all", "list", "file", "until", "1h"}, 303},   // the default list
		{"editor", []string{"type", "block", "sender", "y@gmail.com", "what", "domain", "whom", "all", "until", "1h"}, 422},
	} {
		p.as(tt.who, post("/entry/new", append(tt.fields, "why", "a reason")...), tt.status)
	}
	changes, err := p.Editor.Changes(t.Context(), managed.ChangesQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes.Changes {
		if c.By == "helpdesk" && (len(c.After) != 1 || strings.Contains(c.After[0], "2999") || !strings.Contains(c.After[0], "until=")) {
			t.Errorf("the help desk added %q", c.After)
		}
		if c.By == "bound" && c.For != "ann@b.example" {
			t.Errorf("a bound account added %q", c.After)
		}
	}
	entries(t, p, "blocked", "y@a.example")

	// The place to go back to is the console's own.
	response, _ := p.as("editor", post("/entry/new", "type", "allow", "sender", "z@a.example", "whom", "all", "until", "1h", "why", "x", "back", "//evil.example/"), 303)
	if to := response.Header.Get("Location"); !strings.HasPrefix(to, "/lists?done=") {
		t.Errorf("the browser goes to %s", to)
	}
}

// TestReason adds no entry with a reason that a list cannot have, and shows the form again with it.
func TestReason(t *testing.T) {
	p := newTestLists(t, "", nil)
	fields := []string{"type", "allow", "sender", "x@a.example", "whom", "all", "until", "1h"}
	for reason, want := range map[string]string{
		"":                            "Say why",
		"a ## b":                      "The reason contains ##",
		"until=2099-01-01 a":          "The reason contains until=",
		"a\nb":                        "The reason contains a line end",
		strings.Repeat("\u00e4", 501): "at most 500 characters",
	} {
		_, body := p.as("helpdesk", post("/entry/new", append(fields, "why", reason)...), 400)
		wantAll(t, body, want, `id="preview"`, `name="why" value="`+html.EscapeString(visible(reason))+`"`)
		submit(t, body, reason)
	}
	p.as("helpdesk", post("/entry/new", append(fields, "why", strings.Repeat("\u00e4", 500))...), 303)
	entries(t, p, "allowed", "x@a.example")
}

// TestEntryUnchanged adds an entry again, and is told that the list has it.
func TestEntryUnchanged(t *testing.T) {
	p := newTestLists(t, "", nil)
	for _, want := range []string{"/mail?done=", "/mail?unchanged=allowed"} {
		response, _ := p.as("editor", post("/entry/new", "type", "allow", "sender", "x@a.example", "whom", "all", "until", "never", "why", "a partner", "back", "/mail?unchanged=blocked"), 303)
		if to := response.Header.Get("Location"); !strings.HasPrefix(to, want) {
			t.Errorf("the browser goes to %s, want %s", to, want)
		}
	}
	_, body := p.as("editor", get("/mail?unchanged=allowed"), 200)
	wantAll(t, body, "The list <b>allowed</b> has this entry already, as it is.")
	for _, other := range []string{"nothing", "file", "<b>"} {
		_, body = p.as("editor", get("/mail?unchanged="+url.QueryEscape(other)), 200)
		wantNone(t, body, "has this entry already")
	}
}

// TestEntryEnd refuses ends that JSON and lists cannot have.
func TestEntryEnd(t *testing.T) {
	p := newParts(t, "")
	token := addToken(t, p.Console)
	for until, want := range map[string]int{"9999-12-30": 201, "9999-12-31T23:59:59-12:00": 400, "9999-12-31T23:59:59.5Z": 400} {
		body := fmt.Sprintf(`{"entry": "x%d@a.example", "until": %q}`, want, until)
		r := httptest.NewRequest(http.MethodPost, "http://gate.example/api/v1/lists/allowed/entries", strings.NewReader(body))
		response, answer := ask(p.Console, bearing(r, token))
		if response.StatusCode != want || want == 400 && !strings.Contains(answer, "leave it out for an entry that counts for good") {
			t.Errorf("%s: %s %s", until, response.Status, answer)
		}
	}
}

// TestKeyTwice refuses a body of which two readers could read two things, and changes nothing.
func TestKeyTwice(t *testing.T) {
	p := newParts(t, "")
	token := addToken(t, p.Console)
	for body, want := range map[string]string{
		`{"entry": "x@a.example", "entry": "y@a.example"}`: `entry`,
		`{"entry": "x@a.example", "ENTRY": "y@a.example"}`: `ENTRY`,
	} {
		r := httptest.NewRequest(http.MethodPost, "http://gate.example/api/v1/lists/allowed/entries", strings.NewReader(body))
		response, answer := ask(p.Console, bearing(r, token))
		if response.StatusCode != http.StatusBadRequest || !strings.Contains(answer, `the key \"`+want+`\" stands there twice`) {
			t.Errorf("%s: %s %s", body, response.Status, answer)
		}
	}
	if _, answer := ask(p.Console, bearing(get("/api/v1/lists/allowed"), token)); strings.Contains(answer, "a.example") {
		t.Errorf("the list has an entry: %s", answer)
	}
}

// TestEntryCountsLonger offers the help desk no button for an entry that others have let in for
// longer.
func TestEntryCountsLonger(t *testing.T) {
	p := newTestLists(t, "", nil)
	p.change(t, "ann", "allowed", "x@a.example", "a partner")
	fields := []string{"type", "allow", "sender", "x@a.example", "whom", "all", "until", "1h"}
	for _, r := range []*http.Request{get(fill(append(fields, "show", "1")...)), post("/entry/new", append(fields, "why", "a reason")...)} {
		_, body := p.as("helpdesk", r, 409)
		wantAll(t, body, "x@a.example is in the list allowed already, and counts longer.")
		wantNone(t, body, `id="preview"`)
	}
	_, body := p.as("editor", get(fill(append(fields, "show", "1")...)), 200)
	wantAll(t, body, `id="preview"`)
}

// TestNoManagedList says which lines make one.
func TestNoManagedList(t *testing.T) {
	p := newTestLists(t, "", nil)
	for i := range p.Config().Lists {
		p.Config().Lists[i].Managed = false
	}
	_, body := p.as("editor", get(fill("type", "allow", "sender", "x@a.example", "whom", "all", "show", "1")), 200)
	wantAll(t, body, "config.toml", "[[list]]", "allowed-managed", "managed = true", "default = true")
	p.as("editor", post("/entry/new", "type", "block", "sender", "x@a.example", "whom", "all", "why", "x"), 409)
}

var hiddenField = regexp.MustCompile(`<input type="hidden"[^>]*>`)

// TestHostileEntries fills the form with texts that are meant to harm.
func TestHostileEntries(t *testing.T) {
	p := newTestLists(t, "", nil)
	p.refused(decisions.Decision{ID: "A1", Sender: `"<script>alert(1)</script>"@a.example`, Recipients: []string{`"<img src=x onerror=alert(1)>"@b.example`}, List: "<b>", Entry: "x\u202ey", Reason: "<script>"})
	for _, bad := range []string{`"><script>alert(1)</script>`, "javascript:alert(1)", "x@a.example\r\nuntil=2999-01-01", "x@a.example # until=2999-01-01", "\x00", "\u202e", strings.Repeat("x", 5000), "{{.}}", `"<script>alert(1)</script>"@a.example`, "x@a.example ## note"} {
		for _, field := range []string{"sender", "recipient", "what", "whom", "until", "date", "list", "id", "back", "type"} {
			fields := []string{"type", "allow", "sender", "x@a.example", "whom", "all", "until", "1h", "id", "A1", "show", "1", field, bad}
			response, body := ask(p.Console, with(get(fill(fields...)), p.cookie("editor")))
			checkPage(t, field+"="+bad, body)
			shown := hiddenField.ReplaceAllString(body, "")
			if response.StatusCode >= 500 || strings.Contains(body, "<script>alert") || strings.Contains(body, "<img src=x") || strings.Contains(shown, "\u202e") {
				t.Errorf("%s=%q: %s\n%s", field, bad, response.Status, mainOf(body))
			}
		}
	}
	// A reason is one text of one line, whatever it holds.
	for _, bad := range []string{"a\nspam.example", "# until=2999-01-01", "until=2999-01-01 x", "## private", "<script>alert(1)</script>"} {
		response, _ := ask(p.Console, with(post("/entry/new", "type", "allow", "sender", "r@a.example", "whom", "all", "until", "1h", "why", bad), p.cookie("editor")))
		if response.StatusCode != http.StatusSeeOther && response.StatusCode != http.StatusBadRequest {
			t.Errorf("reason %q: %s", bad, response.Status)
		}
	}
	_, text := p.as("viewer", get("/lists/allowed/export"), 200)
	if strings.Contains(text, "\nspam.example") || strings.Contains(text, "until=2999") {
		t.Errorf("the list is %q", text)
	}
}

// TestHiddenAddresses says that mail cannot be compared if the history hides its addresses.
func TestHiddenAddresses(t *testing.T) {
	for _, mode := range []string{"hash", "domain"} {
		p := newTestLists(t, "[log]\naddresses='"+mode+"'\n", nil)
		p.change(t, "ann", "blocked", "spam.example", "unsolicited")
		p.refused(decisions.Decision{ID: "A1", Sender: p.Show("x@spam.example"), Recipients: []string{p.Show("ann@b.example")}, List: "blocked", Entry: "spam.example"})
		_, body := p.as("editor", get(fill("type", "allow", "sender", "x@spam.example", "what", "address", "whom", "all", "until", "1h", "id", "A1", "show", "1")), 200)
		wantAll(t, body, "1 decisions cannot be compared", "Let in x@spam.example for an hour")
		_, body = p.as("editor", get(fill("type", "allow", "sender", p.Show("x@spam.example"), "id", "A1", "show", "1")), map[string]int{"hash": 400, "domain": 200}[mode])
		wantAll(t, body, map[string]string{"hash": "only a hash", "domain": "everyone at spam.example"}[mode])
	}
}
