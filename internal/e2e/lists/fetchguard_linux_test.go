package lists

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"aead.dev/minisign"

	"spamgate/internal/e2e/harness"
)

// publisher is a server of lists whose answer can be changed.
type publisher struct {
	*httptest.Server
	mu      sync.Mutex
	handler http.HandlerFunc
	asked   []string // the header fields of all requests, and their paths
}

func newPublisher(t *testing.T) *publisher {
	p := &publisher{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		h := p.handler
		p.asked = append(p.asked, fmt.Sprint(r.URL, " ", r.Header))
		p.mu.Unlock()
		h(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *publisher) answer(h http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handler = h
}

func (p *publisher) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.asked...)
}

// withoutLength answers with a text that ends with the connection.
func withoutLength(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.0 200 OK\r\nETag: \"1\"\r\n\r\n"+text)
	}
}

// fetches runs "lists fetch ads" without a gate, and returns its output.
func fetches(t *testing.T, dir string, want int, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command(harness.Binary(t), append([]string{"lists", "fetch", "ads"}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	stdout, stderr, code := harness.Run(t, cmd)
	if code != want {
		t.Errorf("lists fetch %q: exit code %d, want %d: %s%s", args, code, want, stdout, stderr)
	}
	return stdout + stderr
}

// copyOf reads the copy of the list.
func copyOf(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "state", "copies", "ads", "list"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// configure writes a configuration with one list.
func configure(t *testing.T, keys string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	harness.WriteFile(t, filepath.Join(dir, "config.toml"), harness.Setup{Lists: "[[list]]\nname = \"ads\"\nallow_http = true\n" + keys}.Config())
	return dir
}

// TestFetchCut checks that a list whose end is not known does not stay cut off, and that one
// that looks so replaces no copy.
func TestFetchCut(t *testing.T) {
	t.Parallel()
	const whole = "one.example\ntwo.example\nthree.example\n"
	p := newPublisher(t)
	dir := configure(t, fmt.Sprintf("url = %q\n", p.URL+"/ads.txt"))
	p.answer(withoutLength(whole[:12]))
	fetches(t, dir, 0, nil)
	p.answer(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		io.WriteString(w, whole)
	})
	fetches(t, dir, 0, nil)
	if got := copyOf(t, dir); got != whole {
		t.Errorf("the copy is %q", got)
	}
	p.answer(withoutLength(whole[:30]))
	if text := fetches(t, dir, 2, nil); !strings.Contains(text, "does not end in a newline, as the copy does") {
		t.Errorf("fetch says %q", text)
	}
	for _, text := range []string{`{"error":"quota exceeded"}`, "<!--" + strings.Repeat("x", 720) + "-->\n<html>"} {
		p.answer(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) })
		if text := fetches(t, dir, 2, nil); !strings.Contains(text, "it is not a list but a") {
			t.Errorf("fetch says %q", text)
		}
	}
	if got := copyOf(t, dir); got != whole {
		t.Errorf("the copy is %q", got)
	}
}

// TestFetchSigned checks that a signature is for one list, that its time does not go back,
// and that an admin can.
func TestFetchSigned(t *testing.T) {
	t.Parallel()
	public, private, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := newPublisher(t)
	serve := func(text, file string, pos int) {
		signature := minisign.SignWithComments(private, []byte(text), fmt.Sprintf("timestamp:%d\tfile:%s", pos, file), "")
		p.answer(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, ".minisig") {
				w.Write(signature)
				return
			}
			io.WriteString(w, text)
		})
	}
	dir := configure(t, fmt.Sprintf("url = %q\npublic_key = %q\n", p.URL+"/blocked.txt", public))
	serve("two.example\n", "blocked.txt", 200)
	fetches(t, dir, 0, nil)
	serve("friend.example\n", "allowed.txt", 300)
	if text := fetches(t, dir, 2, nil, "--force"); !strings.Contains(text, `it is for the file "allowed.txt", not for "blocked.txt"`) {
		t.Errorf("fetch says %q", text)
	}
	serve("one.example\n", "blocked.txt", 100)
	if text := fetches(t, dir, 2, nil); !strings.Contains(text, "to go back to it, run spamgate lists fetch ads --force") {
		t.Errorf("fetch says %q", text)
	}
	if got := copyOf(t, dir); got != "two.example\n" {
		t.Errorf("the copy is %q", got)
	}
	fetches(t, dir, 0, nil, "--force", "--reason", "two was wrong")
	fetches(t, dir, 0, nil)
	if got := copyOf(t, dir); got != "one.example\n" {
		t.Errorf("the copy is %q", got)
	}
	log, err := os.ReadFile(filepath.Join(dir, "state", "audit.log"))
	if err != nil || strings.Count(string(log), "\n") != 1 || !strings.Contains(string(log), `"what":"fetch with --force","why":"two was wrong"`) {
		t.Errorf("audit log: %s, %v", log, err)
	}
}

// TestFetchRedirected checks that a server of the internet, which a proxy leads to here,
// cannot have the gate ask a service of this machine, and that the token of the list's URL
// stays with its server.
func TestFetchRedirected(t *testing.T) {
	t.Parallel()
	hidden, proxy := newPublisher(t), newPublisher(t)
	hidden.answer(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hidden.example\n") })
	env := []string{"HTTP_PROXY=" + proxy.URL, "http_proxy=" + proxy.URL, "NO_PROXY=", "no_proxy="}
	dir := configure(t, `url = "http://lists.example/ads.txt?token=secret"`+"\n")
	for _, target := range []string{hidden.URL, "http://169.254.169.254/latest/meta-data/", "http://127.1/", "http://[::ffff:10.0.0.1]/"} {
		proxy.answer(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, target+"?token=secret", http.StatusFound)
		})
		for _, args := range [][]string{nil, {"--json"}} {
			text := fetches(t, dir, 2, env, args...)
			if !strings.Contains(text, "which is allowed only if url itself leads to such an address") || strings.Contains(text, "secret") {
				t.Errorf("to %s: fetch says %q", target, text)
			}
		}
	}
	if asked := hidden.requests(); len(asked) != 0 {
		t.Errorf("the service was asked for %q", asked)
	}

	other := newPublisher(t)
	other.answer(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "one.example\n") })
	first := newPublisher(t)
	first.answer(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) })
	dir = configure(t, fmt.Sprintf("url = %q\n", first.URL+"/ads.txt?token=secret"))
	fetches(t, dir, 0, nil)
	if asked := other.requests(); len(asked) != 1 || strings.Contains(asked[0], "secret") || strings.Contains(asked[0], "Referer") {
		t.Errorf("the other server was asked for %q", asked)
	}
}

// TestFetchSecret checks that the token of a URL is in nothing that a gate says, whether its
// list can be fetched or not.
func TestFetchSecret(t *testing.T) {
	t.Parallel()
	const token = "c2VjcmV0LXRva2Vu0123456789"
	p := newPublisher(t)
	p.answer(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "gone") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		io.WriteString(w, "one.example\n")
	})
	table := func(name string) string {
		return fmt.Sprintf("[[list]]\nname = %q\noptional = true\nallow_http = true\nurl = %q\n", name, p.URL+"/"+token+"/"+name+"?token="+token)
	}
	g := harness.StartGate(t, harness.Setup{Lists: table("ads") + table("gone")})
	g.WaitRecord("list not fetched, and there is no copy of it", "list", "gone")
	harness.WaitVerdict(t, g.Addr, "x@one.example", "550")
	all := g.Lists(t, 0, "status", "--json") + g.Lists(t, 0, "status") + g.Lists(t, 0, "status", "ads") +
		g.Lists(t, 0, "fetch", "ads", "--json") + g.Lists(t, 2, "fetch", "gone", "--json") + g.Lists(t, 2, "fetch", "gone") +
		g.Lists(t, 2, "add", "x.example", "--list", "ads", "--reason", "r") + g.Lists(t, 0, "fetch", "ads", "--force")
	g.Stop()
	all += g.Log.String()
	text, err := os.ReadFile(filepath.Join(g.Dir, "state", "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	all += string(text)
	if pos := strings.Index(all, token); pos >= 0 {
		t.Errorf("the token is in %q", all[max(0, pos-200):min(len(all), pos+100)])
	}
	if !strings.Contains(all, p.URL+"/.../ads?...") {
		t.Errorf("the URL is not shown: %s", all)
	}
}
