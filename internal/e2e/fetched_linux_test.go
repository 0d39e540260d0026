package e2e

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
)

// TestListsFromURLs wants lists to be fetched over https before the gate opens, a
// new one at a reload, and a gate whose server is gone to go on with its copies.
func TestListsFromURLs(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s.example  # fetched\n", filepath.Base(r.URL.Path))
	}))
	defer server.Close()
	authority := filepath.Join(t.TempDir(), "authority.pem")
	writeFile(t, authority, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	table := func(name string) string {
		return fmt.Sprintf("[[list]]\nname = %q\nurl = %q\n", name, server.URL+"/"+name)
	}
	dir := t.TempDir()
	serve := func() *gate {
		cmd := exec.Command(binary(t), "serve")
		cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+authority)
		g := launch(t, dir, cmd)
		g.addr = g.waitListening()
		return g
	}

	writeFile(t, filepath.Join(dir, "config.toml"), setup{lists: table("ads")}.config())
	g := serve()
	wantRefusal(t, waitVerdict(t, g.addr, "x@ads.example", "550"), "x@ads.example", "ads", "fetched")
	writeFile(t, filepath.Join(dir, "config.toml"), setup{lists: table("ads") + table("more")}.config())
	g.signal(syscall.SIGHUP)
	wantRefusal(t, waitVerdict(t, g.addr, "x@more.example", "550"), "x@more.example", "more", "fetched")
	g.stop()

	server.Close()
	g = serve()
	for _, name := range []string{"ads", "more"} {
		from := "x@" + name + ".example"
		wantRefusal(t, waitVerdict(t, g.addr, from, "550"), from, name, "fetched")
	}
}

// TestListAuthority wants a list's own authority to count for it at the start and in
// reloads, one of which finds no such file.
func TestListAuthority(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s.example  # fetched\n", filepath.Base(r.URL.Path))
	}))
	defer server.Close()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "ca.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	table := func(name, authority string) string {
		return fmt.Sprintf("[[list]]\nname = %q\nurl = %q\ntls_ca = %q\n", name, server.URL+"/"+name, authority)
	}
	configure := func(lists string) { writeFile(t, filepath.Join(dir, "config.toml"), setup{lists: lists}.config()) }
	configure(table("ads", "ca.pem"))
	g := launch(t, dir, exec.Command(binary(t), "serve"))
	g.addr = g.waitListening()
	wantRefusal(t, waitVerdict(t, g.addr, "x@ads.example", "550"), "x@ads.example", "ads", "fetched")

	configure(table("ads", "ca.pem") + table("more", "gone.pem"))
	g.signal(syscall.SIGHUP)
	if why := g.waitRecord("reload failed, nothing has changed").string("error"); !strings.Contains(why, `list.tls_ca: `) || !strings.Contains(why, "gone.pem") {
		t.Errorf("the log says %q", why)
	}
	configure(table("ads", "ca.pem") + table("more", "ca.pem"))
	g.signal(syscall.SIGHUP)
	wantRefusal(t, waitVerdict(t, g.addr, "x@more.example", "550"), "x@more.example", "more", "fetched")
}

// TestListNotFetched wants a gate not to start without a list, and to say why, but
// without one that is optional.
func TestListNotFetched(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	list := fmt.Sprintf("[[list]]\nname = \"gone\"\nallow_http = true\nurl = %q\n", server.URL+"/gone")
	g := launchGate(t, setup{lists: list})
	if code := g.wait(); code != 2 {
		t.Errorf("exit code %d", code)
	}
	want := `list "gone" from ` + server.URL + `/gone: the server answered 404 Not Found: check the URL`
	if text := g.log.String(); !strings.Contains(text, want) {
		t.Errorf("got %q, want %q", text, want)
	}

	g = startGate(t, setup{lists: list + "optional = true\n"})
	g.waitRecord("list not fetched, and there is no copy of it", "list", "gone")
}
