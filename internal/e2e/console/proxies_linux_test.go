package console

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// proxyName is the name in the page's examples.
const proxyName = "gate.example.net"

// example returns the block of a language in the page's section about opening the console, with
// texts replaced, each of which is there once: "old", "new", ….
func example(t testing.TB, language string, replace ...string) string {
	t.Helper()
	for _, b := range blocks(t, "Opening the console") {
		if b.language != language {
			continue
		}
		for i := 0; i < len(replace); i += 2 {
			if n := strings.Count(b.text, replace[i]); n != 1 {
				t.Fatalf("%q is %d times in the example for %s", replace[i], n, language)
			}
			b.text = strings.Replace(b.text, replace[i], replace[i+1], 1)
		}
		return b.text
	}
	t.Fatalf("%s has no example for %s", page, language)
	return ""
}

// startBehind starts a gate whose console is behind a proxy: at a Unix socket, or over TCP. It
// returns the console's address for the gate's configuration.
func startBehind(t testing.TB, unix bool, lines ...string) (*harness.Gate, string) {
	t.Helper()
	addr := harness.FreeAddr(t)
	if unix {
		dir, err := os.MkdirTemp("", "console-") // a path that is short enough for a socket
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		addr = "unix:" + filepath.Join(dir, "console.sock")
	}
	lines = append(lines, `url = "https://`+proxyName+`"`)
	g := harness.StartGate(t, harness.Setup{Tables: harness.ConsoleTable(addr, lines...), Lists: harness.ManagedLists, Files: map[string]string{"blocked.txt": "spam.example\n"}})
	g.AddUser("admin", "admin")
	return g, addr
}

// run runs a proxy until the end of the test, and waits until it listens at an address.
func run(t testing.TB, addr, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	out := harness.NewOutput(t, filepath.Base(program))
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		out.End()
	})
	harness.WaitFor(t, program, func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// behindNginx starts nginx with the page's example, and returns a visitor of it.
func behindNginx(t testing.TB, gate string, replace ...string) *visitor {
	t.Helper()
	nginx := harness.Program(t, "nginx", "nginx")
	cert, addr, dir := harness.NewCertificate(t, proxyName), harness.FreeAddr(t), t.TempDir()
	server := strings.TrimPrefix(gate, "unix:")
	if strings.HasPrefix(gate, "unix:") {
		server = gate
	}
	text := example(t, "nginx", append([]string{
		"unix:/run/spamgate/console.sock", server, "listen 443 ssl", "listen " + addr + " ssl",
		"/etc/ssl/gate.example.net.pem", cert.Both, "/etc/ssl/private/gate.example.net.key", cert.Both,
	}, replace...)...)
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;"
	}
	config := fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log stderr; %[2]s
events {}
http {
	access_log off;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fastcgi; uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
%[3]s}
`, dir, user, text)
	harness.WriteFile(t, filepath.Join(dir, "nginx.conf"), config)
	run(t, addr, nginx, "-p", dir, "-e", "stderr", "-c", filepath.Join(dir, "nginx.conf"))
	return newVisitor(t, "https://"+proxyName, addr, cert.Roots)
}

// behindHAProxy starts HAProxy with the page's example, and returns a visitor of it.
func behindHAProxy(t testing.TB, gate string) *visitor {
	t.Helper()
	haproxy := harness.Program(t, "haproxy", "haproxy")
	cert, addr, dir := harness.NewCertificate(t, proxyName), harness.FreeAddr(t), t.TempDir()
	server := gate
	if path, ok := strings.CutPrefix(gate, "unix:"); ok {
		server = "unix@" + path
	}
	text := example(t, "haproxy", "unix@/run/spamgate/console.sock", server, "bind :443 ", "bind "+addr+" ", "/etc/haproxy/gate.example.net.pem", cert.Both)
	harness.WriteFile(t, filepath.Join(dir, "haproxy.cfg"), "global\n    log stderr format raw local0\n\n"+text+"\n")
	run(t, addr, haproxy, "-db", "-f", filepath.Join(dir, "haproxy.cfg"))
	return newVisitor(t, "https://"+proxyName, addr, cert.Roots)
}

// TestBehindProxies walks all routes behind nginx and HAProxy with the page's configuration,
// over TCP and at a Unix socket: nobody is let in without a session, also not one who says that
// a proxy has named him. The gate behind the Unix socket believes what its proxy names.
func TestBehindProxies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		unix  bool
		start func(testing.TB, string) *visitor
	}{
		{"nginx, TCP", false, func(t testing.TB, gate string) *visitor { return behindNginx(t, gate) }},
		{"nginx, Unix", true, func(t testing.TB, gate string) *visitor { return behindNginx(t, gate) }},
		{"HAProxy, TCP", false, behindHAProxy},
		{"HAProxy, Unix", true, behindHAProxy},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var lines []string
			if tt.unix {
				lines = append(lines, `sso_header = "X-Remote-User"`)
			}
			_, addr := startBehind(t, tt.unix, lines...)
			v := tt.start(t, addr)
			v.wantClosed()
			v.wantClosed(trust...)
			cookie := v.login("admin")
			if !strings.HasPrefix(cookie, "__Host-") {
				t.Errorf("the cookie is %s", cookie)
			}
			v.wantIn("admin", "Cookie", cookie)
			if response, _ := v.ask("GET", "/account", "Cookie", cookie, "Host", "attacker.example"); response.StatusCode == http.StatusOK {
				t.Errorf("another Host: %s", response.Status)
			}
		})
	}
}

// TestUsersOfTheProxy has nginx authenticate the users, and name them to the gate.
func TestUsersOfTheProxy(t *testing.T) {
	t.Parallel()
	g, addr := startBehind(t, true, `sso_header = "X-Remote-User"`)
	g.Command(t, 0, "console", "user", "add", "ann", "--role", "viewer", "--no-password")
	users := filepath.Join(t.TempDir(), "users")
	harness.WriteFile(t, users, "ann:{PLAIN}secret\nstranger:{PLAIN}secret\n")
	v := behindNginx(t, addr, `proxy_set_header X-Remote-User "";`, `auth_basic "mail"; auth_basic_user_file `+users+`; proxy_set_header X-Remote-User $remote_user;`)
	basic := func(name, password string) string {
		r, _ := http.NewRequest("GET", "/", nil)
		r.SetBasicAuth(name, password)
		return r.Header.Get("Authorization")
	}
	v.wantIn("ann", "Authorization", basic("ann", "secret"))
	v.wantIn("ann", "Authorization", basic("ann", "secret"), "X-Remote-User", "admin")
	for what, fields := range map[string][]string{
		"nobody":                 nil,
		"with the field alone":   {"X-Remote-User", "ann"},
		"with a wrong password":  {"Authorization", basic("ann", "guess")},
		"a user without account": {"Authorization", basic("stranger", "secret")},
	} {
		if response, body := v.ask("GET", "/account", fields...); response.StatusCode == http.StatusOK {
			t.Errorf("%s: %s\n%s", what, response.Status, body)
		}
	}
}
