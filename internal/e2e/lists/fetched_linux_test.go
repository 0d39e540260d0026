package lists

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestListsFromURLs checks that a gate fetches its lists over https before it opens,
// fetches a new one at a reload, and uses its copies when the server is gone.
func TestListsFromURLs(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s.example  # fetched\n", filepath.Base(r.URL.Path))
	}))
	defer server.Close()
	authority := filepath.Join(t.TempDir(), "authority.pem")
	harness.WriteFile(t, authority, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	table := func(name string) string {
		return fmt.Sprintf("[[list]]\nname = %q\nurl = %q\n", name, server.URL+"/"+name)
	}
	dir := t.TempDir()
	serve := func() *harness.Gate {
		cmd := exec.Command(harness.Binary(t), "serve")
		cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+authority)
		g := harness.Launch(t, dir, cmd)
		g.Addr = g.WaitListening()
		return g
	}

	harness.WriteFile(t, filepath.Join(dir, "config.toml"), harness.Setup{Lists: table("ads")}.Config())
	g := serve()
	harness.WantRefusal(t, harness.WaitVerdict(t, g.Addr, "x@ads.example", "550"), "x@ads.example", "ads", "fetched")
	harness.WriteFile(t, filepath.Join(dir, "config.toml"), harness.Setup{Lists: table("ads") + table("more")}.Config())
	g.Signal(syscall.SIGHUP)
	harness.WantRefusal(t, harness.WaitVerdict(t, g.Addr, "x@more.example", "550"), "x@more.example", "more", "fetched")
	g.Stop()

	server.Close()
	g = serve()
	for _, name := range []string{"ads", "more"} {
		from := "x@" + name + ".example"
		harness.WantRefusal(t, harness.WaitVerdict(t, g.Addr, from, "550"), from, name, "fetched")
	}
}

// TestListAuthority checks that a list's own certificate authority is used at the start
// and after reloads, one of which finds no such file.
func TestListAuthority(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s.example  # fetched\n", filepath.Base(r.URL.Path))
	}))
	defer server.Close()
	dir := t.TempDir()
	harness.WriteFile(t, filepath.Join(dir, "ca.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	table := func(name, authority string) string {
		return fmt.Sprintf("[[list]]\nname = %q\nurl = %q\ntls_ca = %q\n", name, server.URL+"/"+name, authority)
	}
	configure := func(lists string) {
		harness.WriteFile(t, filepath.Join(dir, "config.toml"), harness.Setup{Lists: lists}.Config())
	}
	configure(table("ads", "ca.pem"))
	g := harness.Serve(t, dir)
	harness.WantRefusal(t, harness.WaitVerdict(t, g.Addr, "x@ads.example", "550"), "x@ads.example", "ads", "fetched")

	configure(table("ads", "ca.pem") + table("more", "gone.pem"))
	g.Signal(syscall.SIGHUP)
	if why := g.WaitRecord("reload failed, nothing has changed").Text("error"); !strings.Contains(why, `list.tls_ca: `) || !strings.Contains(why, "gone.pem") {
		t.Errorf("the log says %q", why)
	}
	configure(table("ads", "ca.pem") + table("more", "ca.pem"))
	g.Signal(syscall.SIGHUP)
	harness.WantRefusal(t, harness.WaitVerdict(t, g.Addr, "x@more.example", "550"), "x@more.example", "more", "fetched")
}

// TestListNotFetched checks that a gate does not start without a list and says why, but
// starts without an optional one.
func TestListNotFetched(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	list := fmt.Sprintf("[[list]]\nname = \"gone\"\nallow_http = true\nurl = %q\n", server.URL+"/gone")
	g := harness.LaunchGate(t, harness.Setup{Lists: list})
	if code := g.Wait(); code != 2 {
		t.Errorf("exit code %d", code)
	}
	want := `list "gone" from ` + server.URL + `/gone: the server answered 404 Not Found: check the URL`
	if text := g.Log.String(); !strings.Contains(text, want) {
		t.Errorf("got %q, want %q", text, want)
	}

	g = harness.StartGate(t, harness.Setup{Lists: list + "optional = true\n"})
	g.WaitRecord("list not fetched, and there is no copy of it", "list", "gone")
}
