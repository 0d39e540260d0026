package monitoring

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/setup"
)

// TestAdminSocket checks the mode of the socket, and that the gate removes it.
func TestAdminSocket(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		config string
		path   string
		mode   fs.FileMode
	}{
		{"", "state/admin.sock", 0o600},
		{"[admin]\nsocket_mode = \"0660\"\nsocket_group = \"" + fmt.Sprint(os.Getgid()) + "\"\n", "state/admin.sock", 0o660},
		{"[admin]\nsocket = \"other.sock\"\n", "other.sock", 0o600},
	} {
		g := harness.StartGate(t, harness.Setup{Tables: test.config})
		info, err := os.Lstat(filepath.Join(g.Dir, test.path))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Type() != fs.ModeSocket || info.Mode().Perm() != test.mode {
			t.Errorf("%s has mode %v, want %v", test.path, info.Mode(), test.mode)
		}
		if s := g.Status(t, "blocked"); s.From != "gate" || s.PID != g.Process.Pid || s.Lists[0].Entries != 1 {
			t.Errorf("status %+v of process %d", s, g.Process.Pid)
		}
		g.Stop()
		if _, err := os.Lstat(filepath.Join(g.Dir, test.path)); err == nil {
			t.Errorf("%s is still there", test.path)
		}
		if s := g.Status(t, "blocked"); s.From != "disk" || s.Lists[0].Entries != 1 {
			t.Errorf("status without a gate: %+v", s)
		}
	}
}

// TestAdminSocketTaken starts gates whose socket cannot be made. If the configuration
// names the socket, the gate ends with the reason; otherwise it runs without one.
func TestAdminSocketTaken(t *testing.T) {
	t.Parallel()
	files := map[string]string{"state/admin.sock": "no socket", "precious": "no socket"}
	g := harness.StartGate(t, harness.Setup{Files: files})
	if text := g.WaitRecord("without an admin socket: spamgate lists cannot ask this gate").Text("error"); !strings.Contains(text, g.SocketPath()) {
		t.Errorf("the log says %q", text)
	}
	g = harness.LaunchGate(t, harness.Setup{Files: files, Tables: "[admin]\nsocket = \"precious\"\n"})
	if code := g.Wait(); code != 2 {
		t.Errorf("exit code %d, want 2", code)
	}
	if !strings.Contains(g.Log.String(), filepath.Join(g.Dir, "precious")) {
		t.Errorf("it said %s", g.Log)
	}
	if text, err := os.ReadFile(filepath.Join(g.Dir, "precious")); string(text) != "no socket" {
		t.Errorf("the file has %q, %v", text, err)
	}
}

// TestIdleConnections keeps more connections to the metrics than the gate accepts: each has had an
// answer, and waits. The oldest ones end, and everybody else is answered. Foreign names are not.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	g := harness.StartGate(t, harness.Setup{Tables: "[admin]\nmetrics_addr = \"127.0.0.1:0\"\n"})
	addr := g.WaitRecord("metrics").Text("addr")
	ask := func(path, host string) (net.Conn, int) {
		t.Helper()
		c, err := net.DialTimeout("tcp", addr, harness.WorkTimeout)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(harness.WorkTimeout))
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, host)
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("%s with idle connections: %v", path, err)
		}
		defer response.Body.Close()
		return c, response.StatusCode
	}
	first, _ := ask("/healthz", addr)
	for range 2 * setup.MetricsConnections {
		for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
			if _, status := ask(path, addr); status != http.StatusOK {
				t.Fatalf("%s: %d", path, status)
			}
		}
	}
	if _, err := io.Copy(io.Discard, first); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the oldest connection is open: %v", err)
	}
	for host, want := range map[string]int{"localhost": http.StatusOK, "gate": http.StatusOK, "evil.example.com": http.StatusMisdirectedRequest} {
		if _, status := ask("/metrics", host); status != want {
			t.Errorf("under the name %s: %d, want %d", host, status, want)
		}
	}
}

// TestMetrics sends mail and reads the metrics over the socket and over TCP.
func TestMetrics(t *testing.T) {
	t.Parallel()
	day := harness.Today()
	g := harness.StartGate(t, harness.Setup{Tables: "[admin]\nmetrics_addr = \"127.0.0.1:0\"\n"})
	tcp := "http://" + g.WaitRecord("metrics").Text("addr")
	harness.WaitVerdict(t, g.Addr, "x@spam.example", "550")
	c := harness.MustDial(t, g.Addr)
	c.MustSend(t, "good@example.org", "b@example.net", "From: <good@example.org>\r\n\r\nhello\r\n")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

	for url, client := range map[string]*http.Client{tcp: client, "http://gate": g.SocketClient()} {
		m := harness.ReadMetrics(t, client, url+"/metrics")
		for _, want := range []struct {
			name   string
			labels []string
			value  float64
		}{
			{"spamgate_sessions_total", nil, 2},
			{"spamgate_messages_total", []string{"outcome", "accepted"}, 1},
			{"spamgate_messages_total", []string{"outcome", "failed"}, 0},
			{"spamgate_decisions_total", []string{"list", "blocked", "action", "reject", "stage", "envelope"}, 1},
			{"spamgate_decisions_total", []string{"list", "", "action", "accept", "stage", "envelope"}, 1},
			{"spamgate_lookups_total", nil, 3}, // one of them for the header
			{"spamgate_filter_maybes_total", nil, 1},
			{"spamgate_filter_false_maybes_total", nil, 0},
			{"spamgate_list_entries", []string{"list", "blocked"}, 1},
			{"spamgate_list_invalid_lines", []string{"list", "blocked"}, 0},
			{"spamgate_list_error", []string{"list", "blocked"}, 0},
			{"spamgate_list_held", []string{"list", "blocked"}, 0},
			{"spamgate_list_hits_total", []string{"list", "blocked"}, 1},
			{"spamgate_filter_info", []string{"kind", "classic"}, 1},
			{"spamgate_filter_size_bytes", nil, 32 << 20},
			{"spamgate_next_hop_up", nil, 1},
			{"spamgate_generation", nil, 1},
		} {
			if got := harness.MetricValue(t, m, want.name, want.labels...); got != want.value {
				t.Errorf("%s: %s %q is %v, want %v", url, want.name, want.labels, got, want.value)
			}
		}
		if harness.MetricValue(t, m, "spamgate_list_loaded_timestamp_seconds", "list", "blocked") < 1e9 {
			t.Error("the list was loaded long ago")
		}
		for _, name := range []string{"spamgate_lookup_duration_seconds", "go_goroutines", "process_open_fds", "spamgate_build_info", "spamgate_build_duration_seconds"} {
			harness.MetricValue(t, m, name)
		}
	}
	// Over TCP the gate answers nothing else.
	for _, path := range []string{"/v1/status", "/v1/rescan", "/"} {
		response, err := client.Get(tcp + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", path, response.Status)
		}
	}
	s := g.Status(t, "blocked")
	harness.SkipAfter(t, day)
	if s.Lists[0].HitsToday == nil || *s.Lists[0].HitsToday != 1 {
		t.Errorf("hits today: %+v", s)
	}
}

// TestAdminReload moves the socket and the metrics with a reload. If the new ones fail,
// the gate keeps the old ones.
func TestAdminReload(t *testing.T) {
	t.Parallel()
	s := harness.Setup{}
	g := harness.StartGate(t, s)
	reload := func(admin, msg string) {
		t.Helper()
		s.Tables = admin
		before := len(g.Records(msg))
		harness.WriteFile(t, filepath.Join(g.Dir, "config.toml"), s.Config())
		g.Signal(1) // SIGHUP
		g.Log.Wait(msg, func(line string) bool {
			if harness.ParseRecord(line).Matches(msg, nil) {
				before--
			}
			return before < 0
		})
	}
	reload("[admin]\nsocket = \"moved.sock\"\nmetrics_addr = \"127.0.0.1:0\"\n", "reloaded")
	if _, err := os.Lstat(g.SocketPath()); err == nil {
		t.Error("the old socket is still there")
	}
	if s := g.Status(t, "blocked"); s.From != "gate" {
		t.Errorf("status %+v", s)
	}
	harness.ReadMetrics(t, http.DefaultClient, "http://"+g.WaitRecord("metrics").Text("addr")+"/metrics")

	reload("[admin]\nsocket = \"no/such/directory/s\"\n", "reload failed, nothing has changed")
	s.Tables = "[admin]\nsocket = \"moved.sock\"\n"
	harness.WriteFile(t, filepath.Join(g.Dir, "config.toml"), s.Config())
	if s := g.Status(t, "blocked"); s.From != "gate" {
		t.Errorf("after a reload that failed: status %+v", s)
	}
}
