package harness

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"
)

// Password is the password of the users that [Gate.AddUser] adds.
const Password = "correct horse battery staple"

// ManagedLists are the tables of managed lists as a new installation has them, and of one that
// blocks spam.example from a file.
const ManagedLists = `
[[list]]
name = "blocked"
managed = true
default = true
[[list]]
name = "allowed"
type = "allow"
managed = true
default = true
[[list]]
name = "allowed-for"
type = "allow"
per_recipient = true
managed = true
default = true
[[list]]
name = "blocked-file"
path = "blocked.txt"
`

// ConsoleTable returns the table of a console at an address, "127.0.0.1:4711" or "unix:PATH".
func ConsoleTable(addr string, lines ...string) string {
	return "\n[console]\naddr = \"" + addr + "\"\n" + strings.Join(lines, "\n") + "\n"
}

// AddUser adds a user of the console with [Password].
func (g *Gate) AddUser(name, role string, domains ...string) {
	g.T.Helper()
	cmd := exec.Command(Binary(g.T), withDomains([]string{"console", "user", "add", name, "--role", role, "--password-stdin"}, domains)...)
	cmd.Dir, cmd.Stdin = g.Dir, strings.NewReader(Password+"\n")
	if out, errs, code := Run(g.T, cmd); code != 0 {
		g.T.Fatalf("console user add %s: exit code %d\n%s%s", name, code, out, errs)
	}
}

// AddToken adds a token of the API and returns its secret.
func (g *Gate) AddToken(name, role string, domains ...string) string {
	g.T.Helper()
	out := g.Command(g.T, 0, withDomains([]string{"console", "token", "add", name, "--role", role}, domains)...)
	for word := range strings.FieldsSeq(out) {
		if strings.HasPrefix(word, "sgt_") {
			return word
		}
	}
	g.T.Fatalf("console token add %s printed no token:\n%s", name, out)
	return ""
}

func withDomains(args, domains []string) []string {
	for _, d := range domains {
		args = append(args, "--domain", d)
	}
	return args
}

// API asks the JSON API of a console.
type API struct {
	URL    string // "http://127.0.0.1:4711"
	Token  string
	Client *http.Client // nil: one with a time limit
}

// Do sends a request, whose body is JSON unless it is nil, and returns the status. It decodes
// the answer into result unless that is nil.
func (a API) Do(method, path string, body, result any) (int, error) {
	var send io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return 0, err
		}
		send = strings.NewReader(string(text))
	}
	r, err := http.NewRequest(method, a.URL+path, send)
	if err != nil {
		return 0, err
	}
	if a.Token != "" {
		r.Header.Set("Authorization", "Bearer "+a.Token)
	}
	client := a.Client
	if client == nil {
		client = &http.Client{Timeout: WorkTimeout}
	}
	response, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && result != nil {
		err = json.Unmarshal(text, result)
	}
	return response.StatusCode, err
}

// Must is [API.Do], and fails the test unless the status is the wanted one.
func (a API) Must(t testing.TB, want int, method, path string, body, result any) {
	t.Helper()
	var answer json.RawMessage
	status, err := a.Do(method, path, body, &answer)
	if err != nil || status != want {
		t.Fatalf("%s %s: status %d, want %d, %v\n%s", method, path, status, want, err, answer)
	}
	if result != nil {
		if err := json.Unmarshal(answer, result); err != nil {
			t.Fatalf("%s %s: %v\n%s", method, path, err, answer)
		}
	}
}

// EntryPath returns the path of an entry in the API.
func EntryPath(list, entry string) string {
	return "/api/v1/lists/" + url.PathEscape(list) + "/entries/" + url.PathEscape(entry)
}

// WaitRow waits until the history has a decision about a message.
func (a API) WaitRow(t testing.TB, id string) {
	t.Helper()
	WaitFor(t, "the row of "+id, func() bool {
		var page struct{ Decisions []json.RawMessage }
		a.Must(t, http.StatusOK, "GET", "/api/v1/decisions?id="+id, nil, &page)
		return len(page.Decisions) > 0
	})
}
