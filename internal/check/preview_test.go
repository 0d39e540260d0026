package check

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"spamgate/blocklist"
	"spamgate/internal/config"
	"spamgate/internal/decisions"
)

const previewConfig = `
policy.recipient_domains = ["example.net"]
[[listener]]
addr = "127.0.0.1:2525"
name = "mx"
[[listener]]
addr = "127.0.0.1:2526"
name = "submission"
lists = ["blocked"]
[[recipient_policy]]
name = "sales"
match = ["sales@example.net"]
lists = ["blocked"]
[[recipient_policy]]
name = "lab"
match = ["lab@example.net"]
max_action = "tag"
[[list]]
name = "always"
path = "always.txt"
type = "allow"
override = true
[[list]]
name = "allowed"
path = "allowed.txt"
type = "allow"
[[list]]
name = "proven"
path = "proven.txt"
type = "allow"
proven_by = ["spf"]
[[list]]
name = "allowed-for"
path = "allowed-for.txt"
type = "allow"
per_recipient = true
[[list]]
name = "blocked"
path = "blocked.txt"
[[list]]
name = "watched"
path = "watched.txt"
action = "monitor"
[[list]]
name = "doubtful"
path = "doubtful.txt"
action = "tag"
[[list]]
name = "dbl"
dns_zone = "dbl.example.org"
`

var previewFiles = map[string]string{
	"always.txt": "", "allowed.txt": "friend@bulk.example\n", "proven.txt": "", "watched.txt": "",
	"allowed-for.txt": "ann@example.net news.example\n",
	"blocked.txt":     "bulk.example\nx@bulk.example\nnews.example\n!ok@news.example\n",
	"doubtful.txt":    "doubtful.example\nbulk.example\n",
}

func decision(id, sender string, recipients ...string) decisions.Decision {
	return decisions.Decision{
		ID: id, Time: time.Unix(1_700_000_000, 0), Event: "refused", Count: 1, Listener: "mx", Client: "192.0.2.1:25",
		Sender: sender, Recipients: recipients, Action: "reject",
	}
}

// withHeader returns a decision about a message whose header was seen.
func withHeader(d decisions.Decision, senders ...string) decisions.Decision {
	d.MessageID, d.HeaderSenders = "<1@example.org>", senders
	return d
}

// TestPreview: which mail would have been decided otherwise.
func TestPreview(t *testing.T) {
	e := engineOf(t, previewConfig, previewFiles)
	gone, hashed, reduced := decision("GONE", "a@bulk.example"), decision("HASH", "0123456789abcdef"), decision("REDUCED", "a@bulk.example", "*@example.net")
	gone.Listener = "old"
	byDNS := decision("DNS", "a@new.example", "bob@example.net")
	byDNS.List, byDNS.Entry = "dbl", "new.example"
	watched := decision("A", "a@bulk.example")
	watched.Event = "monitored"
	past := []decisions.Decision{
		decision("A", "a@bulk.example", "bob@example.net"),
		decision("X", "x@bulk.example", "bob@example.net"),
		decision("FRIEND", "friend@bulk.example", "bob@example.net"),
		decision("LAB", "a@bulk.example", "lab@example.net"),
		decision("SALES", "a@bulk.example", "sales@example.net"),
		decision("TWO", "a@bulk.example", "sales@example.net", "bob@example.net"),
		decision("POSTMASTER", "a@bulk.example", "postmaster@example.net"),
		decision("OTHERS", "a@bulk.example", "bob@example.org"), // nobody takes it
		withHeader(decision("HEADER", "a@clean.example", "bob@example.net"), "a@bulk.example"),
		withHeader(decision("BOUNCE", "<>", "bob@example.net"), "a@bulk.example"),
		decision("ANN", "a@news.example", "ann@example.net"),
		decision("BOB", "a@news.example", "bob@example.net"),
		byDNS, gone, hashed, reduced, watched,
		decision("NONE", "nobody"),
	}
	for _, tt := range []struct {
		p    Proposed
		want string // id:was>would
	}{
		{Proposed{List: "allowed", Entry: "a@bulk.example"}, "A:reject>accept LAB:tag>accept TWO:reject>accept HEADER:reject>accept"},
		{Proposed{List: "allowed", Entry: "bulk.example"}, "A:reject>accept LAB:tag>accept TWO:reject>accept HEADER:reject>accept"},
		{Proposed{List: "allowed", Entry: "friend@bulk.example", Remove: true}, "FRIEND:accept>reject"},
		{Proposed{List: "always", Entry: "bulk.example"}, "A:reject>accept X:reject>accept LAB:tag>accept TWO:reject>accept HEADER:reject>accept"},
		{Proposed{List: "always", Entry: "a@clean.example"}, "HEADER:reject>accept"},
		{Proposed{List: "allowed", Entry: "new.example"}, "DNS:reject>accept"},
		{Proposed{List: "allowed-for", For: "bob@example.net", Entry: "news.example"}, "BOB:reject>accept"},
		{Proposed{List: "allowed-for", For: "ann@example.net", Entry: "news.example", Remove: true}, "ANN:accept>reject"},
		{Proposed{List: "blocked", Entry: "clean.example"}, ""},
		{Proposed{List: "blocked", Entry: "<>"}, "BOUNCE:accept>reject"},
		{Proposed{List: "blocked", Entry: "news.example", Remove: true}, "BOB:reject>accept"},
		{Proposed{List: "blocked", Entry: "!a@news.example"}, "BOB:reject>accept"},
		{Proposed{List: "blocked", Entry: "bulk.example", Remove: true}, "A:reject>tag SALES:reject>accept TWO:reject>tag POSTMASTER:accept>tag HEADER:reject>tag"},
		{Proposed{List: "watched", Entry: "clean.example"}, ""},
		{Proposed{List: "proven", Entry: "a@bulk.example"}, ""},
	} {
		r, err := e.Preview(t.Context(), tt.p, past)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range r.Changed {
			got = append(got, fmt.Sprintf("%s:%s>%s", c.ID, c.Was, c.Would))
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%+v:\n%s, want\n%s", tt.p, s, tt.want)
		}
		if r.Compared != 12 || r.Hidden != 2 || r.Others != 3 || r.Since == nil {
			t.Errorf("%+v: %+v", tt.p, r)
		}
	}
	for _, p := range []Proposed{
		{List: "unknown", Entry: "a@bulk.example"}, {List: "allowed", Entry: "a b"}, {List: "allowed", Entry: "!a@b.example"},
		{List: "allowed-for", Entry: "news.example"}, {List: "dbl", Entry: "news.example"}, {List: "allowed", Entry: ""},
	} {
		if _, err := e.Preview(t.Context(), p, past); err == nil {
			t.Errorf("%+v: no error", p)
		}
	}
}

// TestPreviewAgainstChange: what Preview says is what the lists say once they are changed.
func TestPreviewAgainstChange(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 4))
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	address := func() string {
		return pick("a", "b", "a+x") + "@" + pick("", "m.", "n.m.") + pick("one.example", "two.example")
	}
	entry := func() string {
		a := address()
		_, domain, _ := strings.Cut(a, "@")
		return pick(a, domain, domain, "@"+domain, "*."+domain, "a@")
	}
	recipient := func() string { return pick("ann", "bob", "sales", "lab", "postmaster") + "@example.net" }
	lists := []string{"always", "allowed", "proven", "allowed-for", "blocked", "watched", "doubtful"}
	line := func(list string) (line string, p Proposed) {
		p = Proposed{List: list, Entry: entry()}
		if list == "blocked" && r.IntN(4) == 0 {
			p.Entry = "!" + p.Entry
		}
		line = p.Entry
		if list == "allowed-for" {
			p.For = pick(recipient(), "example.net")
			line = p.For + " " + line
		}
		return line, p
	}
	unlike := 0
	for range rounds(40) {
		files := map[string]string{}
		held := map[string][]string{}
		for _, list := range lists {
			for range r.IntN(5) {
				name, _ := line(list)
				held[list] = append(held[list], name)
			}
			files[list+".txt"] = strings.Join(held[list], "\n")
		}
		e := engineOf(t, previewConfig, files)
		name, p := line(pick(lists...))
		p.Remove = r.IntN(2) == 0
		if all := held[p.List]; p.Remove && len(all) > 0 {
			name = all[r.IntN(len(all))]
			if p.Entry = name; p.For != "" {
				p.For, p.Entry, _ = strings.Cut(name, " ")
			}
		}
		key := func(line string) string { return strings.Replace(line, "!", "", 1) }
		kept := slices.DeleteFunc(held[p.List], func(other string) bool { return key(other) == key(name) })
		if !p.Remove {
			kept = append(kept, name)
		}
		files[p.List+".txt"] = strings.Join(kept, "\n")
		changed := engineOf(t, previewConfig, files)

		var past []decisions.Decision
		for i := range 20 {
			d := decision(fmt.Sprint(i), pick(address(), address(), "<>"), recipient(), recipient())
			if r.IntN(2) == 0 {
				d = withHeader(d, address(), address())
			}
			d.Listener = pick("mx", "mx", "submission")
			past = append(past, d)
		}
		got, err := e.Preview(t.Context(), p, past)
		if err != nil {
			t.Fatal(err)
		}
		want := &Preview{Changed: []Changed{}}
		for i := range past {
			c := Changed{ID: past[i].ID}
			if c.differ(actionsOf(t, e, &past[i]), actionsOf(t, changed, &past[i])) {
				want.Changed = append(want.Changed, c)
			}
		}
		unlike += len(want.Changed)
		same := func(a, b Changed) bool {
			return a.ID == b.ID && a.Was == b.Was && a.Would == b.Would && slices.Equal(a.Recipients, b.Recipients)
		}
		if !slices.EqualFunc(got.Changed, want.Changed, same) {
			t.Fatalf("%+v of %q:\n%+v, want\n%+v", p, held, got.Changed, want.Changed)
		}
	}
	if unlike == 0 {
		t.Error("no change ever counted: the test tests less than it should")
	}
}

// actionsOf returns what the lists of an Engine say of a message.
func actionsOf(t *testing.T, e *Engine, d *decisions.Decision) []recipientAction {
	t.Helper()
	k := sessionOf(t, e, Question{Listener: d.Listener, Offline: true, Past: true})
	p, ok := k.newPast(d)
	if !ok {
		t.Fatalf("%+v is not judged", d)
	}
	m, err := k.judgePast(t.Context(), k.judge.View(), &p)
	if err != nil {
		t.Fatal(err)
	}
	return m.actions()
}

// rounds returns how often a long proof is done: so many times, or as SPAMGATE_PREVIEW_ROUNDS
// says.
func rounds(few int) int {
	if n, err := strconv.Atoi(os.Getenv("SPAMGATE_PREVIEW_ROUNDS")); err == nil {
		return n
	}
	return few
}

// TestHelps: whether a change helps with one mail, and what is told.
func TestHelps(t *testing.T) {
	e := engineOf(t, previewConfig, previewFiles)
	a, x := decision("A", "a@bulk.example", "bob@example.net"), decision("X", "x@bulk.example", "bob@example.net")
	news, clean := decision("NEWS", "a@news.example", "bob@example.net"), decision("CLEAN", "a@clean.example", "bob@example.net")
	header := withHeader(decision("HEADER", "a@bulk.example", "bob@example.net"), "x@bulk.example")
	sales, lab := decision("SALES", "a@bulk.example", "sales@example.net"), decision("LAB", "a@clean.example", "lab@example.net")
	out := decision("OUT", "a@bulk.example", "bob@example.net")
	out.Listener = "submission"
	gone := out
	gone.Listener = "old"
	wrapped := decision("SRS", "srs0=a=b=bulk.example=x@fwd.example", "bob@example.net")
	for _, tt := range []struct {
		about decisions.Decision
		p     Proposed
		helps bool
		why   string
	}{
		{a, Proposed{List: "allowed", Entry: "a@bulk.example"}, true, "the gate has not seen the header of this mail: a sender there may be listed, too"},
		{withHeader(a, "a@bulk.example"), Proposed{List: "allowed", Entry: "a@bulk.example"}, true, ""},
		{x, Proposed{List: "allowed", Entry: "bulk.example"}, false, "list blocked has the more specific entry x@bulk.example, which stands"},
		{x, Proposed{List: "allowed", Entry: "a@bulk.example"}, false, "the entry does not match x@bulk.example, and list blocked has the entry x@bulk.example"},
		{header, Proposed{List: "allowed", Entry: "a@bulk.example"}, false, "the entry lets in another sender of this mail, but x@bulk.example in the header is still refused: list blocked has the entry x@bulk.example"},
		{header, Proposed{List: "always", Entry: "a@bulk.example"}, true, ""},
		{a, Proposed{List: "proven", Entry: "a@bulk.example"}, false, "the entry counts only if the sender is proven by spf, which is not known of this mail"},
		{out, Proposed{List: "allowed", Entry: "a@bulk.example"}, false, "submission does not use the list allowed"},
		{sales, Proposed{List: "allowed", Entry: "a@bulk.example"}, false, "the recipient policy sales does not use the list allowed"},
		{news, Proposed{List: "allowed-for", For: "ann@example.net", Entry: "a@news.example"}, false, "the entry is for mail to ann@example.net, and this mail was not"},
		{withHeader(news), Proposed{List: "allowed-for", For: "bob@example.net", Entry: "a@news.example"}, true, ""},
		{clean, Proposed{List: "allowed", Entry: "a@clean.example"}, false, "the lists let this mail in already"},
		{withHeader(a), Proposed{List: "blocked", Entry: "bulk.example", Remove: true}, true, "it is delivered with a tag: list doubtful has the entry bulk.example"},
		{x, Proposed{List: "blocked", Entry: "x@bulk.example", Remove: true}, false, "x@bulk.example is still refused: list blocked has the entry bulk.example"},
		{withHeader(news), Proposed{List: "blocked", Entry: "!a@news.example"}, true, ""},
		{wrapped, Proposed{List: "allowed", Entry: "bulk.example"}, false, "list blocked has the more specific entry x@bulk.example, which stands"},
		{clean, Proposed{List: "blocked", Entry: "clean.example"}, true, ""},
		{clean, Proposed{List: "doubtful", Entry: "clean.example"}, true, "it is not refused, but gets the action tag"},
		{lab, Proposed{List: "blocked", Entry: "clean.example"}, true, "it is not refused, but gets the action tag"},
		{clean, Proposed{List: "watched", Entry: "clean.example"}, false, "the list only logs"},
		{clean, Proposed{List: "blocked", Entry: "b@clean.example"}, false, "the entry matches no sender of this mail where the list counts"},
		{decision("F", "friend@bulk.example", "bob@example.net"), Proposed{List: "doubtful", Entry: "friend@bulk.example"}, false, "list allowed lets the sender in"},
		{decision("P", "a@clean.example", "postmaster@example.net"), Proposed{List: "blocked", Entry: "clean.example"}, false, "the recipients are reachable by every sender"},
		{x, Proposed{List: "blocked", Entry: "example"}, false, ""},
		{a, Proposed{List: "blocked", Entry: "a@bulk.example"}, false, "the lists refuse this mail already: list blocked has the entry bulk.example"},
		{decision("F", "friend@bulk.example", "bob@example.net"), Proposed{List: "allowed", Entry: "friend@bulk.example", Remove: true}, true, ""},
		{clean, Proposed{List: "allowed", Entry: "clean.example", Remove: true}, false, "no block list has an entry for this mail"},
		{gone, Proposed{List: "allowed", Entry: "a@bulk.example"}, false, "there is no listener old any more"},
		{decision("H", "*@bulk.example"), Proposed{List: "allowed", Entry: "a@bulk.example"}, false, "the history does not show the addresses of this mail"},
		{decision("N", "nobody"), Proposed{List: "allowed", Entry: "a@bulk.example"}, false, "no sender of this mail is judged"},
	} {
		tt.p.About = &tt.about
		r, err := e.Preview(t.Context(), tt.p, nil)
		if tt.why == "" && !tt.helps {
			if err == nil {
				t.Errorf("%s %+v: no error", tt.about.ID, tt.p)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if r.Helps != tt.helps || r.Why != tt.why {
			t.Errorf("%s, %s %s:\n%v: %s\nwant %v: %s", tt.about.ID, tt.p.List, tt.p.Entry, r.Helps, r.Why, tt.helps, tt.why)
		}
	}
}

// TestEffect has mail that is delivered with a tag, or stopped or let in without the change.
func TestEffect(t *testing.T) {
	e := engineOf(t, previewConfig, previewFiles)
	tagged, listed := withHeader(decision("T", "a@doubtful.example", "bob@example.net")), withHeader(decision("L", "a@bulk.example", "bob@example.net"))
	for _, tt := range []struct {
		about decisions.Decision
		p     Proposed
		want  Effect
	}{
		{tagged, Proposed{List: "allowed", Entry: "a@doubtful.example"}, Effect{Helps: true, Tagged: true}},
		{withHeader(decision("LAB", "a@bulk.example", "lab@example.net")), Proposed{List: "allowed", Entry: "a@bulk.example"}, Effect{Helps: true, Tagged: true}},
		{tagged, Proposed{List: "allowed", Entry: "b@doubtful.example"}, Effect{Tagged: true, Why: "it is delivered with a tag all the same: list doubtful has the entry doubtful.example"}},
		{tagged, Proposed{List: "blocked", Entry: "doubtful.example"}, Effect{Helps: true, Tagged: true}},
		{decision("C", "a@clean.example", "bob@example.net"), Proposed{List: "allowed", Entry: "a@clean.example"}, Effect{Already: true, Why: "the lists let this mail in already"}},
		{listed, Proposed{List: "blocked", Entry: "a@bulk.example"}, Effect{Already: true, Why: "the lists refuse this mail already: list blocked has the entry bulk.example"}},
		{listed, Proposed{List: "allowed", Entry: "a@bulk.example"}, Effect{Helps: true}},
	} {
		tt.p.About = &tt.about
		r, err := e.Preview(t.Context(), tt.p, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Effect != tt.want {
			t.Errorf("%s, %s %s:\n%+v, want\n%+v", tt.about.ID, tt.p.List, tt.p.Entry, r.Effect, tt.want)
		}
	}
}

// TestRemedies: the ways to let a mail in, the narrowest first.
func TestRemedies(t *testing.T) {
	c := load(t, `
[[list]]
name = "always"
managed = true
type = "allow"
override = true
[[list]]
name = "partners"
managed = true
type = "allow"
[[list]]
name = "allowed"
managed = true
type = "allow"
default = true
[[list]]
name = "allowed-for"
managed = true
type = "allow"
per_recipient = true
default = true
[[list]]
name = "blocked"
managed = true
[[list]]
name = "others"
path = "others.txt"
`, map[string]string{"others.txt": "both.example\nx@both.example\n"})
	for i, text := range []string{"", "", "", "", "bulk.example\nx@bulk.example\nboth.example\none@clean.example\n"} {
		place := c.Lists[i].Files()
		if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(place, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set := setOf(t, c)
	e := New(Options{Config: func() *config.Config { return c }, Set: func() *blocklist.Set { return set }})
	choose := func(id, sender string, header ...string) decisions.Decision {
		d := withHeader(decision(id, sender, "ann@example.net"), header...)
		d.Listener = ""
		return d
	}
	for _, tt := range []struct {
		d    decisions.Decision
		want string
	}{
		{choose("A", "A@Bulk.example"), "allowed-for:ann@example.net a@bulk.example; allowed:a@bulk.example; partners:a@bulk.example; blocked:!a@bulk.example; always:a@bulk.example; blocked:-bulk.example"},
		{choose("X", "x@bulk.example"), "allowed-for:ann@example.net x@bulk.example; allowed:x@bulk.example; partners:x@bulk.example; always:x@bulk.example; blocked:-x@bulk.example+-bulk.example"},
		{choose("TWO", "a@bulk.example", "b@bulk.example"), "allowed-for:ann@example.net a@bulk.example+ann@example.net b@bulk.example; allowed:a@bulk.example+b@bulk.example; " +
			"partners:a@bulk.example+b@bulk.example; blocked:!a@bulk.example+!b@bulk.example; always:a@bulk.example; blocked:-bulk.example"},
		{choose("BOTH", "a@both.example"), "allowed-for:ann@example.net a@both.example; allowed:a@both.example; partners:a@both.example; always:a@both.example"},
		{choose("ONE", "one@clean.example"), "allowed-for:ann@example.net one@clean.example; allowed:one@clean.example; partners:one@clean.example; blocked:-one@clean.example; always:one@clean.example"},
		{choose("CLEAN", "a@clean.example"), ""},
		{choose("HIDDEN", "*@bulk.example"), ""},
		{choose("NOBODY", "nobody"), ""},
	} {
		all, err := e.Remedies(t.Context(), tt.d)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range all {
			var entries []string
			for _, p := range r {
				text := strings.TrimSpace(p.For + " " + p.Entry)
				if p.Remove {
					text = "-" + text
				}
				entries = append(entries, text)
			}
			got = append(got, r[0].List+":"+strings.Join(entries, "+"))
		}
		if s := strings.Join(got, "; "); s != tt.want {
			t.Errorf("%s:\n%s, want\n%s", tt.d.ID, s, tt.want)
		}
	}
}
