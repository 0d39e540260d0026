package console

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"spamgate/internal/accounts"
	"spamgate/internal/admin"
	"spamgate/internal/decisions"
	"spamgate/internal/fleet"
	"spamgate/internal/fleetsearch"
)

// partsFleet is the fleet of a console in a test: this gate is mx1, and mx2 has a real history.
type partsFleet struct {
	admin.FleetGate // what no page asks

	*parts
	recorder *decisions.Recorder
	reader   *decisions.Reader

	state  admin.Fleet
	silent bool   // mx2 does not answer
	broken string // why mx2 cannot answer
	away   string // why no other gate is asked
}

// newPartsFleet returns a console of a gate in a fleet.
func newPartsFleet(t testing.TB) *partsFleet {
	f := &partsFleet{parts: newParts(t, "[fleet]\nname = \"mx1\"\nservers = [\"nats://127.0.0.1:4222\"]\n")}
	f.recorder, f.reader = openHistory(t, t.TempDir())
	f.Console.Fleet = f
	f.state = admin.Fleet{State: admin.FleetConnected, Status: fleet.Status{Name: "mx1"}}
	return f
}

// elsewhere records decisions on mx2.
func (f *partsFleet) elsewhere(rows ...decisions.Decision) {
	f.t.Helper()
	for i := range rows {
		f.recorder.Record(&rows[i])
	}
	if err := f.recorder.Sync(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

func (f *partsFleet) Fleet(context.Context) admin.Fleet { return f.state }

func (f *partsFleet) FleetDecisions(ctx context.Context, q decisions.Query, only string) (fleetsearch.Page, error) {
	question := &fleetsearch.Question{Query: q, Asker: "mx1", Only: only}
	answers, err := question.Collect(time.Now())
	if err != nil {
		return fleetsearch.Page{}, err
	}
	if only == "" || only == "mx1" {
		page, err := question.Here(ctx, "mx1", f.History.Find)
		answers.Own("mx1", page, err)
	}
	var missing []string
	switch text, err := question.Encode(); {
	case err != nil:
		return fleetsearch.Page{}, err
	case f.away != "" || only == "mx1":
	case f.silent:
		missing = []string{"mx2"}
	case f.broken != "":
		answers.Failed("mx2", errors.New(f.broken))
	default:
		answer, err := fleetsearch.Answer("mx2", f.reader.Find)(ctx, text)
		if err != nil {
			return fleetsearch.Page{}, err
		}
		answers.Add("mx2", answer)
	}
	page := answers.Page(missing)
	page.FleetError = f.away
	return page, nil
}

func TestFleetMail(t *testing.T) {
	f := newPartsFleet(t)
	cookie := login(t, f.Console, "admin")
	f.record(refusal("HEREAAAAAAAA", 2*time.Minute))
	f.elsewhere(refusal("THEREAAAAAAA", time.Minute))
	body := visit(t, f.Console, cookie, "/mail", 200)
	wantText(t, body, "THEREAAAAAAA mx2", "HEREAAAAAAAA mx1", "The gates mx1, mx2 have answered.", "all gates", "this gate only", "Live view of this gate")
	if strings.Index(body, "THEREAAAAAAA") > strings.Index(body, "HEREAAAAAAAA") {
		t.Error("the newest decision is not the first")
	}
	for _, want := range []string{"/mail/THEREAAAAAAA?gate=mx2", "/mail/HEREAAAAAAAA?gate=mx1", "/entry/new?gate=mx2&id=THEREAAAAAAA"} {
		if linkTo(body, want) == "" {
			t.Errorf("there is no link %s in %q", want, links(body))
		}
	}
	for path, want := range map[string][]string{
		"/mail?gate=mx1":                  {"HEREAAAAAAAA", "!THEREAAAAAAA", "!have answered", "Live view"},
		"/mail?gate=mx2":                  {"!HEREAAAAAAAA", "THEREAAAAAAA", "only mx2", "!Live view"},
		"/mail?q=id+THEREAAAAAAA":         {"THEREAAAAAAA"},
		"/mail/THEREAAAAAAA?gate=mx2":     {"gate mx2", "What would happen now on this gate", "The gate refused the sender"},
		"/mail/THEREAAAAAAA":              {"gate mx2", "The gate refused the sender"},
		"/mail/HEREAAAAAAAA":              {"gate mx1", "!on this gate"},
		"/mail?q=nobody@nowhere.example":  {"it never came to a gate of this fleet"},
		"/now":                            {"1 refused"},
		linkTo(body, "/entry/new?gate="):  {"message that you came from", "!no longer in the history"},
		"/mail?list=blocked&action=defer": {"Nothing found"},
	} {
		wantText(t, visit(t, f.Console, cookie, path, 200), want...)
	}
	for _, path := range []string{"/mail/THEREAAAAAAA?gate=mx1", "/mail/HEREAAAAAAAA?gate=mx2"} {
		wantText(t, visit(t, f.Console, cookie, path, 404), "The history has nothing about this id")
	}
	for _, path := range []string{"/mail?gate=%3Cb%3E", "/mail/HEREAAAAAAAA?gate=%3Cb%3E", "/mail.csv?gate=%3Cb%3E"} {
		visit(t, f.Console, cookie, path, 400)
	}
	wantText(t, visit(t, f.Console, cookie, "/now", 200), "1 refused")
	if body := visit(t, f.Console, cookie, "/now", 200); linkTo(body, "/mail?action=reject&gate=mx1&since=1d") == "" {
		t.Errorf("the numbers of this gate lead to %q", links(body))
	}
	_, text := ask(f.Console, with(get("/mail.csv?list=blocked"), cookie))
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) != 3 || rows[0][0] != "gate" || rows[1][0] != "mx2" || rows[2][0] != "mx1" {
		t.Errorf("%v, %v", rows, err)
	}
}

// TestFleetWithoutHistory searches the mail of the fleet from a gate that keeps no history.
func TestFleetWithoutHistory(t *testing.T) {
	f := newPartsFleet(t)
	cookie := login(t, f.Console, "admin")
	f.elsewhere(refusal("THEREAAAAAAA", time.Minute))
	f.config.Decisions.Keep, f.Recorder = 0, nil
	for path, want := range map[string]string{
		"/mail":              "THEREAAAAAAA mx2",
		"/mail?gate=mx1":     "The gate keeps no history",
		"/mail/THEREAAAAAAA": "gate mx2",
		"/now":               "No numbers",
	} {
		wantText(t, visit(t, f.Console, cookie, path, 200), want)
	}
}

// TestFleetUnanswered has another gate that does not answer, and a fleet that is away: own mail is
// there, and the page says what is missing.
func TestFleetUnanswered(t *testing.T) {
	f := newPartsFleet(t)
	cookie, bound := login(t, f.Console, "admin"), login(t, f.Console, "bound")
	f.record(refusal("HEREAAAAAAAA", time.Minute))
	for _, tt := range []struct {
		set         func()
		want, bound string
	}{
		{func() { f.silent = true }, "No answer from mx2 : what came there is missing here.", "No answer from mx2"},
		{func() { f.silent, f.broken = false, "disk I/O error" }, "mx2 could not search: disk I/O error.", "mx2 could not search: tell the server's admin."},
		{func() { f.broken, f.away = "", "not connected: timeout" }, "No other gate of the fleet was asked: not connected: timeout.", "was asked: tell the server's admin."},
	} {
		tt.set()
		wantText(t, visit(t, f.Console, cookie, "/mail", 200), "HEREAAAAAAAA", tt.want)
		wantText(t, visit(t, f.Console, bound, "/mail", 200), "HEREAAAAAAAA", tt.bound)
		wantText(t, visit(t, f.Console, cookie, "/mail?gate=mx1", 200), "HEREAAAAAAAA", "!"+tt.want)
		wantText(t, visit(t, f.Console, cookie, "/mail/HEREAAAAAAAA", 200), "The gate refused the sender")
		wantText(t, visit(t, f.Console, cookie, "/mail/THEREAAAAAAA", 404), tt.want)
		wantText(t, visit(t, f.Console, cookie, "/entry/new?type=allow&show=1&sender=x@mail.spam.example&id=THEREAAAAAAA&gate=mx2", 200), "no longer in the history")
		if response, _ := ask(f.Console, with(get("/mail.csv"), cookie)); response.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("%s: %s", tt.want, response.Status)
		}
	}
}

// TestFleetBound wants an account that is bound to domains to see nothing of others on another gate.
func TestFleetBound(t *testing.T) {
	f := newPartsFleet(t)
	bound := login(t, f.Console, "bound")
	both, others := refusal("QBOTHAAAAAAA", 2*time.Minute), refusal("OTHERSAAAAAA", time.Minute)
	both.Recipients, others.Recipients = []string{"ann@b.example", "secret@c.example"}, []string{"secret@c.example"}
	f.elsewhere(both, others)
	for _, path := range []string{"/mail", "/mail?gate=mx2", "/mail?q=x@mail.spam.example", "/mail/QBOTHAAAAAAA", "/mail/QBOTHAAAAAAA?gate=mx2", "/mail.csv"} {
		_, body := ask(f.Console, with(get(path), bound))
		wantText(t, body, "ann@b.example", "!secret", "!OTHERS")
	}
	wantText(t, visit(t, f.Console, bound, "/mail/OTHERSAAAAAA?gate=mx2", 404), "nothing about this id and your recipients")
	wantText(t, visit(t, f.Console, bound, "/mail?q=secret@c.example", 200), "Nothing found")
	visit(t, f.Console, bound, "/fleet", 403)
	token, err := f.Accounts.AddToken("bound-token", accounts.Viewer, []string{"b.example"})
	if err != nil {
		t.Fatal(err)
	}
	for path, status := range map[string]int{"/api/v1/decisions": 200, "/api/v1/decisions?gate=mx2": 200, "/api/v1/fleet": 403} {
		r := get(path)
		r.Header.Set("Authorization", "Bearer "+token)
		response, body := ask(f.Console, r)
		if response.StatusCode != status || strings.Contains(body, "secret") || strings.Contains(body, "OTHERS") {
			t.Errorf("%s: %s\n%s", path, response.Status, body)
		}
	}
}

// TestFleetPaging follows the pages of two gates.
func TestFleetPaging(t *testing.T) {
	f := newPartsFleet(t)
	cookie := login(t, f.Console, "viewer")
	const n = 2*pageRows + 10
	for i := range n {
		if d := numbered(i, time.Duration(n-i)*time.Minute); i%3 == 0 {
			f.record(d)
		} else {
			f.elsewhere(d)
		}
	}
	seen, pages := map[string]bool{}, 0
	for path := "/mail?list=blocked"; path != ""; pages++ {
		body := visit(t, f.Console, cookie, path, 200)
		for i := range n {
			if id := numbered(i, 0).ID; strings.Contains(body, id) {
				if seen[id] {
					t.Errorf("%s is on two pages", id)
				}
				seen[id] = true
			}
		}
		path = linkTo(body, "/mail?before=")
	}
	if len(seen) != n || pages != 3 {
		t.Errorf("%d of %d rows on %d pages", len(seen), n, pages)
	}
}

func TestFleetPage(t *testing.T) {
	f := newPartsFleet(t)
	cookie := login(t, f.Console, "viewer")
	sum := strings.Repeat("0123456789abcdef", 4)
	lists := func(sequence uint64, failed string) []fleet.ListStatus {
		return []fleet.ListStatus{{Name: "blocked", Sequence: sequence, SHA256: sum, Error: failed, Fetches: sequence == 7}}
	}
	f.state.Server, f.state.Lists, f.state.Problems = "tls://192.0.2.1:4222", lists(7, ""), []string{"mx3: list blocked: the disk is full"}
	f.state.Members = []fleet.Presence{
		{Name: "mx1", Version: "1.0", Seen: time.Now(), Lists: lists(7, "")},
		{Name: "mx2", Version: "1.1", Seen: time.Now().Add(-40 * time.Second), Clock: -95 * time.Second, Lists: lists(4, "")},
		{Name: "mx3", Version: "1.0", Seen: time.Now(), Lists: lists(7, "the disk is full"), Report: json.RawMessage(`{"problem":"next hop is down"}`)},
	}
	body := visit(t, f.Console, cookie, "/fleet", 200)
	wantText(t, body, "The fleet has problems.", "mx3: list blocked: the disk is full", "connected to tls://192.0.2.1:4222", "mx1 this gate",
		"1 list, none behind", "blocked behind by 3", "blocked differs", "-95 s", "40 s ago", "down next hop is down", "0123456789ab", "mx2, mx3")
	if positions := []int{strings.Index(body, "1.1<"), strings.Index(body, "this gate</span>")}; !slices.IsSorted(positions) {
		t.Errorf("members with problems are not the first: %v", positions)
	}
	if linkTo(body, "/fleet") == "" || !strings.Contains(body, `data-reload="10"`) {
		t.Error("the page is not in the navigation, or does not load again")
	}
	single := newParts(t, "")
	viewer := login(t, single.Console, "viewer")
	body = visit(t, single.Console, viewer, "/fleet", 200)
	wantText(t, body, "This gate is in no fleet")
	if linkTo(visit(t, single.Console, viewer, "/mail", 200), "/fleet") != "" {
		t.Error("a gate without a fleet has the page in its navigation")
	}
}

// TestFleetStates shows the states of a gate that is not connected.
func TestFleetStates(t *testing.T) {
	for state, want := range map[string]string{
		admin.FleetConnected:    "The fleet works",
		admin.FleetLeft:         "This gate has left the fleet",
		admin.FleetNotConnected: "The gate goes on with the lists that it has. timeout",
	} {
		f := newPartsFleet(t)
		f.state.State, f.state.Trouble = state, "timeout"
		f.gate.health = admin.Health{Healthy: true, Fleet: &admin.FleetHealth{Problems: []string{"not connected: timeout"}}}
		viewer := login(t, f.Console, "viewer")
		wantText(t, visit(t, f.Console, viewer, "/fleet", 200), want, "No list is shared")
		wantText(t, visit(t, f.Console, viewer, "/now", 200), "The gate works", "The fleet has problems: not connected: timeout")
	}
}

// TestHostileFleet shows hostile text of other members.
func TestHostileFleet(t *testing.T) {
	f := newPartsFleet(t)
	cookie := login(t, f.Console, "admin")
	f.state.Trouble, f.state.Server, f.state.Clash, f.state.MembersError, f.state.Problems = hostile, hostile, hostile, hostile, []string{hostile}
	list := []fleet.ListStatus{{Name: hostile, Sequence: 1 << 63, SHA256: hostile, Error: hostile, Fetches: true}}
	f.state.Lists = list
	report, err := json.Marshal(admin.FleetReport{Problem: hostile})
	if err != nil {
		t.Fatal(err)
	}
	for range maxFleetMembers + 10 {
		f.state.Members = append(f.state.Members, fleet.Presence{Name: hostile, Version: hostile, Clash: hostile, Lists: list, Report: report})
	}
	f.broken, f.recorder = hostile, nil
	for _, path := range []string{"/fleet", "/mail", "/mail/AAAAAAAAAAAA"} {
		_, body := ask(f.Console, with(get(path), cookie))
		if err := checkHTML(body); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if strings.Contains(body, "<script>a") || strings.Contains(body, "<img src=x") || strings.ContainsAny(body, "\u202e\x00\x1b") {
			t.Errorf("%s has hostile text as it is", path)
		}
	}
	wantText(t, visit(t, f.Console, cookie, "/fleet", 200), "And 10 more members.")
}

// TestFleetAPI answers with what "fleet status --json" prints.
func TestFleetAPI(t *testing.T) {
	f := newPartsFleet(t)
	f.elsewhere(refusal("THEREAAAAAAA", time.Minute))
	token, err := f.Accounts.AddToken("monitoring", accounts.Viewer, nil)
	if err != nil {
		t.Fatal(err)
	}
	fetch := func(c *Console, path, token string, into any) {
		t.Helper()
		r := get(path)
		r.Header.Set("Authorization", "Bearer "+token)
		response, body := ask(c, r)
		if err := json.Unmarshal([]byte(body), into); err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v\n%s", path, response.Status, err, body)
		}
	}
	var state admin.Fleet
	fetch(f.Console, "/api/v1/fleet", token, &state)
	if state.State != admin.FleetConnected || state.Name != "mx1" {
		t.Errorf("%+v", state)
	}
	var page fleetsearch.Page
	fetch(f.Console, "/api/v1/decisions?limit=1", token, &page)
	if len(page.Decisions) != 1 || page.Decisions[0].Gate != "mx2" || !slices.Equal(page.Gates, []string{"mx1", "mx2"}) || page.Next != "" {
		t.Errorf("%+v", page)
	}
	single := newParts(t, "")
	if token, err = single.Accounts.AddToken("monitoring", accounts.Viewer, nil); err != nil {
		t.Fatal(err)
	}
	fetch(single.Console, "/api/v1/fleet", token, &state)
	if state.State != admin.FleetOff {
		t.Errorf("%+v", state)
	}
	fetch(single.Console, "/api/v1/decisions", token, &page)
	if page.Decisions == nil {
		t.Errorf("%+v", page)
	}
}
