package decisions

import (
	"encoding/csv"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestFind has a gate that logs warnings only. What it refuses is found at once and in words, by
// all that a search may ask for, with the same answer when the gate has stopped.
func TestFind(t *testing.T) {
	t.Parallel()
	g := start(t, "warn", harness.Setup{})
	id := refuse(t, g)
	for range 2 { // the running gate, and the files
		for _, flags := range [][]string{
			{"--id", id}, {"--id", "550 5.7.1 refused: list blocked; id " + strings.ToLower(id)}, {"--sender", spammer}, {"--sender", "X@Mail.Spam.Example"},
			{"--recipient", ann}, {"--address", ann}, {"--address", spammer}, {"--domain", "spam.example"}, {"--list", "blocked"}, {"--action", "reject"},
			{"--client", "127.0.0.1"}, {"--since", "1h"}, {"--sender", spammer, "--recipient", ann, "--list", "blocked"}, nil,
		} {
			wantIDs(t, g, []string{id}, flags...)
		}
		for _, flags := range [][]string{
			{"--id", "AAAAAAAAAAAA"}, {"--sender", ann}, {"--recipient", spammer}, {"--domain", "am.example"}, {"--list", "other"},
			{"--action", "defer"}, {"--client", "192.0.2.1"}, {"--sender", "<>"},
		} {
			wantIDs(t, g, nil, flags...)
		}
		out := g.Command(t, 0, "decisions", "find")
		wantText(t, out, id+" refused", "from <"+spammer+"> by 127.0.0.1:", "to <"+ann+">", "list blocked: spam.example (unsolicited mail)",
			"reply 550 5.7.1 <"+spammer+"> refused: list blocked (unsolicited mail); id "+id, "1 decision. The history reaches back to 20")
		for line := range strings.Lines(out) {
			if n := len(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("a line of %d columns: %s", n, line)
			}
		}
		out = g.Command(t, 0, "why", id)
		wantText(t, out, id, "refused", "The gate refused the sender <"+spammer+">: list blocked has spam.example (unsolicited mail) at ",
			"The history reaches back to 20", "Now, as spamgate check says: "+spammer+": reject")
		wantText(t, g.Command(t, 1, "decisions", "find", "--id", "AAAAAAAAAAAA"), "Nothing found. The history reaches back to 20")
		wantText(t, g.Command(t, 0, "decisions", "top", "domains"), "mail.spam.example 1 20")
		wantText(t, g.Command(t, 0, "decisions", "top", "lists", "--json"), `"kind": "lists"`, `"name": "blocked", "count": 1,`)
		wantText(t, g.Command(t, 0, "decisions", "export"), `{"id":"`+id+`",`)
		rows, err := csv.NewReader(strings.NewReader(g.Command(t, 0, "decisions", "export", "--csv"))).ReadAll()
		if err != nil || len(rows) != 2 || rows[1][1] != id {
			t.Errorf("%q, %v", rows, err)
		}
		if !g.Ended {
			families := harness.ReadMetrics(t, g.SocketClient(), "http://gate/metrics")
			if n := harness.MetricValue(t, families, "spamgate_decisions_rows_total"); n != 1 {
				t.Errorf("%v rows", n)
			}
			g.Stop()
		}
	}
	if text := logOf(t, g); strings.Contains(text, id) {
		t.Errorf("the log has the refusal:\n%s", text)
	}
}

// TestAccepted: with record = "refused" only the log has what was accepted, and the answer says so.
// With "all" the history has it, too.
func TestAccepted(t *testing.T) {
	t.Parallel()
	g := start(t, "info", harness.Setup{Tables: "[decisions]\nrecord = \"refused\"\n"})
	refuse(t, g)
	accept(t, g)
	wantIDs(t, g, nil, "--sender", friend)
	wantText(t, g.Command(t, 1, "why", friend), "Nothing about the address "+friend+": the history here reaches back to 20",
		`Accepted messages of senders on no list are in the log only; record = "all" keeps them here.`)
	write(t, g, `record = "refused"`, `record = "all"`)
	g.Signal(syscall.SIGHUP)
	harness.WaitFor(t, "the reload", func() bool { return strings.Contains(logOf(t, g), `"msg":"reloaded"`) })
	accept(t, g)
	page := find(t, g, "--sender", friend)
	if len(page.Decisions) != 1 || page.Decisions[0].Event != "accepted" || page.Decisions[0].Size == 0 || !strings.HasPrefix(page.Decisions[0].Reply, "250 ") {
		t.Errorf("%+v", page.Decisions)
	}
}

// TestOff: keep = "0" ends the history of a running gate and removes what it had, and another
// reload begins a new one.
func TestOff(t *testing.T) {
	t.Parallel()
	g := start(t, "info", harness.Setup{Tables: "[decisions]\nkeep = \"7d\"\n"})
	refuse(t, g)
	reload := func(keep, was string) {
		t.Helper()
		n := strings.Count(logOf(t, g), `"msg":"reloaded"`)
		write(t, g, `keep = "`+was+`"`, `keep = "`+keep+`"`)
		g.Signal(syscall.SIGHUP)
		harness.WaitFor(t, "the reload", func() bool { return strings.Count(logOf(t, g), `"msg":"reloaded"`) > n })
	}
	reload("0", "7d")
	if _, err := os.Stat(filepath.Join(g.Dir, "state", "decisions")); !os.IsNotExist(err) {
		t.Errorf("the files of the history: %v", err)
	}
	id := refuse(t, g)
	for _, command := range [][]string{{"decisions", "find"}, {"why", id}} {
		wantText(t, g.Command(t, 2, command...), `the history of decisions is off: [decisions] keep is "0"; set keep = "7d" and reload the gate`)
	}
	reload("1w", "0")
	id = refuse(t, g)
	wantIDs(t, g, []string{id})
}

// TestAddresses has histories that hide addresses.
func TestAddresses(t *testing.T) {
	t.Parallel()
	g := start(t, "info", harness.Setup{Keys: map[string]string{"log": "addresses = \"hash\""}})
	id := refuse(t, g)
	for _, stopped := range []bool{false, true} {
		if stopped {
			g.Stop()
		}
		wantIDs(t, g, []string{id}, "--sender", spammer)
		wantIDs(t, g, []string{id}, "--recipient", "ANN@example.net")
		wantIDs(t, g, nil, "--sender", ann)
		wantText(t, g.Command(t, 2, "decisions", "find", "--domain", "spam.example"), "the history has hashes of addresses")
		wantText(t, g.Command(t, 2, "decisions", "top", "domains"), "the history has hashes of addresses")
		wantText(t, g.Command(t, 0, "why", spammer), id)
		if out := g.Command(t, 0, "decisions", "export"); strings.Contains(out, "x@mail") || strings.Contains(out, ann) {
			t.Errorf("an address is shown: %s", out)
		}
	}
	g = start(t, "info", harness.Setup{Keys: map[string]string{"log": "addresses = \"domain\""}})
	id = refuse(t, g)
	wantIDs(t, g, []string{id}, "--domain", "spam.example")
	wantIDs(t, g, []string{id}, "--sender", "other@mail.spam.example")
	wantText(t, g.Command(t, 0, "decisions", "find", "--sender", "other@mail.spam.example"), "The history has domains only", "from <*@mail.spam.example>")
}

// TestPolicyService: what another door refuses is in the history, with its door.
func TestPolicyService(t *testing.T) {
	t.Parallel()
	addr := harness.FreeAddr(t)
	g := start(t, "warn", harness.Setup{Tables: "[[policy_service]]\nname = \"postfix\"\naddr = \"" + addr + "\"\n"})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	question := "request=smtpd_access_policy\nprotocol_state=RCPT\ninstance=1.2.3\nclient_address=192.0.2.7\nhelo_name=h\nsender=" + spammer + "\nrecipient=" + ann + "\n\n"
	if _, err := c.Write([]byte(question)); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 1024)
	if n, err := c.Read(answer); err != nil || !strings.HasPrefix(string(answer[:n]), "action=550 ") {
		t.Fatalf("%q, %v", answer[:n], err)
	}
	page := find(t, g, "--client", "192.0.2.7")
	if len(page.Decisions) != 1 {
		t.Fatalf("%+v", page)
	}
	if d := page.Decisions[0]; d.Door != "policy_service" || d.Listener != "postfix" || d.Helo != "h" || d.Sender != spammer || len(d.Recipients) != 1 || d.Recipients[0] != ann {
		t.Errorf("%+v", d)
	}
}

// TestSocket asks over the admin socket, with parameters that make no sense, too.
func TestSocket(t *testing.T) {
	t.Parallel()
	g := start(t, "info", harness.Setup{})
	refuse(t, g)
	for path, want := range map[string]int{
		"/v1/decisions": 200, "/v1/decisions?all": 200, "/v1/decisions/top?kind=lists&limit=5": 200, "/v1/decisions/totals": 200,
		"/v1/decisions?sendr=x": 400, "/v1/decisions?limit=0": 400, "/v1/decisions?since=1d": 400, "/v1/decisions?before=x": 400,
		"/v1/decisions/top?kind=ids": 400, "/v1/decisions/top": 400, "/v1/decisions/totals?list=x": 400,
	} {
		response, err := g.SocketClient().Get("http://gate" + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: %s, want %d %s", path, response.Status, want, http.StatusText(want))
		}
	}
}
