package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// lists runs "spamgate lists …" in the gate's directory and returns what it says
// on standard output.
func (g *gate) lists(t testing.TB, want int, args ...string) string {
	t.Helper()
	cmd := exec.Command(binary(t), append([]string{"lists"}, args...)...)
	cmd.Dir = g.dir
	stdout, stderr, code := run(t, cmd)
	if code != want {
		t.Fatalf("lists %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), code, want, stdout, stderr)
	}
	return stdout + stderr
}

// listState is what "lists status --json" says of the gate, and of one list.
type listState struct {
	From       string
	PID        int
	Generation int
	Lists      []struct {
		Name      string
		Entries   int
		Held      bool
		LastGood  bool `json:"last_good"`
		HitsToday *int `json:"hits_today"`
	}
}

func (g *gate) status(t testing.TB, list string) listState {
	t.Helper()
	var s listState
	if err := json.Unmarshal([]byte(g.lists(t, 0, "status", list, "--json")), &s); err != nil || len(s.Lists) != 1 {
		t.Fatalf("status: %+v, %v", s, err)
	}
	return s
}

// today is the day in which a gate counts.
func today() string { return time.Now().UTC().Format(time.DateOnly) }

// notPast skips the rest of a test that is about a day which has ended meanwhile.
func notPast(t testing.TB, day string) {
	t.Helper()
	if today() != day {
		t.Skip("midnight has passed")
	}
}

func (g *gate) socketPath() string { return filepath.Join(g.dir, "state", "admin.sock") }

// numbered is a list with so many entries.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "w%d.example  # number %d\n", i, i)
	}
	return b.String()
}

// TestAdminSocket looks at the socket's rights, and at what is left of it.
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
		g := startGate(t, setup{more: test.config})
		info, err := os.Lstat(filepath.Join(g.dir, test.path))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Type() != fs.ModeSocket || info.Mode().Perm() != test.mode {
			t.Errorf("%s has mode %v, want %v", test.path, info.Mode(), test.mode)
		}
		if s := g.status(t, "blocked"); s.From != "gate" || s.PID != g.process.Pid || s.Lists[0].Entries != 1 {
			t.Errorf("status %+v of process %d", s, g.process.Pid)
		}
		g.stop()
		if _, err := os.Lstat(filepath.Join(g.dir, test.path)); err == nil {
			t.Errorf("%s is still there", test.path)
		}
		if s := g.status(t, "blocked"); s.From != "disk" || s.Lists[0].Entries != 1 {
			t.Errorf("status without a gate: %+v", s)
		}
	}
}

// TestAdminSocketTaken starts gates whose socket cannot be made: one that was told
// where ends with the reason, one that was not does without.
func TestAdminSocketTaken(t *testing.T) {
	t.Parallel()
	files := map[string]string{"state/admin.sock": "no socket", "precious": "no socket"}
	g := startGate(t, setup{files: files})
	if text := g.waitRecord("without an admin socket: spamgate lists cannot ask this gate").string("error"); !strings.Contains(text, g.socketPath()) {
		t.Errorf("the log says %q", text)
	}
	g = launchGate(t, setup{files: files, more: "[admin]\nsocket = \"precious\"\n"})
	if code := g.wait(); code != 2 {
		t.Errorf("exit code %d, want 2", code)
	}
	if !strings.Contains(g.log.String(), filepath.Join(g.dir, "precious")) {
		t.Errorf("it said %s", g.log)
	}
	if text, err := os.ReadFile(filepath.Join(g.dir, "precious")); string(text) != "no socket" {
		t.Errorf("the file has %q, %v", text, err)
	}
}

// TestHeldAcceptRollback has an update held, accepts it, and puts the list back.
func TestHeldAcceptRollback(t *testing.T) {
	t.Parallel()
	g := startGate(t, setup{files: map[string]string{"blocked.txt": numbered(1500)}})
	waitVersions := func(n int) {
		t.Helper()
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for late := time.Now().Add(lateLimit); ; <-tick.C { // they are kept in the background
			if text := g.lists(t, 0, "rollback", "blocked", "--list-versions", "--json"); strings.Count(text, `"version"`) == n {
				return
			} else if time.Now().After(late) {
				t.Fatalf("not %d versions: %s", n, text)
			}
		}
	}
	waitVersions(1)
	g.lists(t, 2, "accept", "blocked") // nothing is held
	g.lists(t, 2, "rollback", "blocked")

	writeFile(t, filepath.Join(g.dir, "blocked.txt"), numbered(100))
	g.waitRecord("list held, its last good version serves", "list", "blocked")
	if s := g.status(t, "blocked"); !s.Lists[0].Held || !s.Lists[0].LastGood || s.Lists[0].Entries != 1500 {
		t.Errorf("status %+v, want it held", s)
	}
	if text := g.lists(t, 1, "diff", "blocked"); !strings.Contains(text, "0 came, 1400 went, 0 changed, 100 are the same") {
		t.Errorf("diff says %q", text)
	}
	if text := g.lists(t, 0, "accept", "blocked", "--dry-run"); !strings.Contains(text, "blocked: would be accepted, 100 entries; 1,500 before") || !strings.Contains(text, "shrunk too much") || strings.Contains(text, "if that is right") {
		t.Errorf("a dry run says %q", text)
	}
	waitVerdict(t, g.addr, "x@w1000.example", "550")

	text := g.lists(t, 0, "accept", "blocked", "--reason", "cleaned up")
	if !strings.Contains(text, "blocked: accepted, 100 entries; 1,500 before") || !strings.Contains(text, "live in the running gate, generation 2") {
		t.Errorf("accept says %q", text)
	}
	waitVerdict(t, g.addr, "x@w1000.example", "250")
	waitVersions(2)

	text = g.lists(t, 0, "rollback", "blocked", "--reason", "that was wrong")
	for _, want := range []string{"list blocked: put back version 2", "with 1,500 entries, live since 2", "  replaced version 2", "to go further back: --to VERSION", "puts back 2", "live in the running gate, generation 3"} {
		if !strings.Contains(text, want) {
			t.Errorf("rollback says %q, want %q", text, want)
		}
	}
	waitVerdict(t, g.addr, "x@w1000.example", "550")
	if now, err := os.ReadFile(filepath.Join(g.dir, "blocked.txt")); string(now) != numbered(1500) {
		t.Errorf("the file is not what it was: %d bytes, %v", len(now), err)
	}
	audit, err := os.ReadFile(filepath.Join(g.dir, "state", "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"command":"accept"`, `100 entries; 1500 before`, `"why":"cleaned up"`, `"command":"rollback"`, `"why":"that was wrong"`, fmt.Sprintf(`"uid":%d`, os.Getuid())} {
		if !strings.Contains(string(audit), want) {
			t.Errorf("the audit log lacks %s:\n%s", want, audit)
		}
	}
	g.stop()

	// Without a gate. So much smaller a version has to be named.
	g.lists(t, 2, "rollback", "blocked")
	var versions []struct {
		Version string
		Entries int
	}
	if err := json.Unmarshal([]byte(g.lists(t, 0, "rollback", "blocked", "--list-versions", "--json")), &versions); err != nil || len(versions) < 2 {
		t.Fatalf("versions %v, %v", versions, err)
	}
	i := slices.IndexFunc(versions, func(v struct {
		Version string
		Entries int
	}) bool {
		return v.Entries == 100
	})
	if i < 0 {
		t.Fatalf("versions %v, want one of 100 entries", versions)
	}
	if text := g.lists(t, 1, "diff", "blocked", "--from", versions[i].Version); !strings.Contains(text, "1400 came, 0 went, 0 changed, 100 are the same") {
		t.Errorf("diff --from says %q", text)
	}
	text = g.lists(t, 0, "rollback", "blocked", "--to", versions[i].Version)
	if !strings.Contains(text, "with 100 entries") || !strings.Contains(text, "no gate is running") {
		t.Errorf("rollback without a gate says %q", text)
	}
	if s := g.status(t, "blocked"); s.Lists[0].Held || s.Lists[0].Entries != 100 {
		t.Errorf("then its status is %+v", s)
	}
}

// metrics reads metrics and checks that they are well made.
func metrics(t testing.TB, client *http.Client, url string) map[string]*dto.MetricFamily {
	t.Helper()
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, response.Status, err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(body)))
	if err != nil {
		t.Fatalf("%s: %v\n%s", url, err, body)
	}
	problems, err := promlint.New(strings.NewReader(string(body))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "spamgate_") { // the rest is client_golang's
			t.Errorf("metric %s: %s", p.Metric, p.Text)
		}
	}
	return families
}

// value is that of the metric with the labels: "name", "value", ….
func value(t testing.TB, families map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	t.Helper()
	for _, m := range families[name].GetMetric() {
		has := map[string]string{}
		for _, l := range m.Label {
			has[l.GetName()] = l.GetValue()
		}
		fits := true
		for i := 0; i+1 < len(labels); i += 2 {
			fits = fits && has[labels[i]] == labels[i+1]
		}
		if fits {
			return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	t.Errorf("there is no %s with %q", name, labels)
	return -1
}

// socketClient asks the gate's socket.
func (g *gate) socketClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			path := g.socketPath()
			if len(path) > 100 { // more than the system takes; on Linux this is the same
				dir, err := os.Open(filepath.Dir(path))
				if err != nil {
					return nil, err
				}
				defer dir.Close()
				path = fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))
			}
			return new(net.Dialer).DialContext(ctx, "unix", path)
		},
		DisableKeepAlives: true,
	}}
}

// TestMetrics sends mail, and reads the metrics over the socket and over TCP.
func TestMetrics(t *testing.T) {
	t.Parallel()
	day := today()
	g := startGate(t, setup{more: "[admin]\nmetrics_addr = \"127.0.0.1:0\"\n"})
	tcp := "http://" + g.waitRecord("metrics").string("addr")
	waitVerdict(t, g.addr, "x@spam.example", "550")
	c := mustDial(t, g.addr)
	c.mustSend(t, "good@example.org", "b@example.net", "From: <good@example.org>\r\n\r\nhello\r\n")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

	for url, client := range map[string]*http.Client{tcp: client, "http://gate": g.socketClient()} {
		m := metrics(t, client, url+"/metrics")
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
			{"spamgate_lookups_total", nil, 3}, // a header's, too
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
			if got := value(t, m, want.name, want.labels...); got != want.value {
				t.Errorf("%s: %s %q is %v, want %v", url, want.name, want.labels, got, want.value)
			}
		}
		if value(t, m, "spamgate_list_loaded_timestamp_seconds", "list", "blocked") < 1e9 {
			t.Error("the list was loaded long ago")
		}
		for _, name := range []string{"spamgate_lookup_duration_seconds", "go_goroutines", "process_open_fds", "spamgate_build_info", "spamgate_build_duration_seconds"} {
			value(t, m, name)
		}
	}
	// Over TCP there are metrics and nothing else.
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
	s := g.status(t, "blocked")
	notPast(t, day)
	if s.Lists[0].HitsToday == nil || *s.Lists[0].HitsToday != 1 {
		t.Errorf("hits today: %+v", s)
	}
}

// TestUnusedEntries asks which entries have not matched, of a gate and without.
func TestUnusedEntries(t *testing.T) {
	t.Parallel()
	day := today()
	g := startGate(t, setup{files: map[string]string{"blocked.txt": "used.example\nidle.example\n!friend@idle.example\n"}})
	waitVerdict(t, g.addr, "x@sub.used.example", "550")
	notPast(t, day)
	const want = "blocked.txt:2\tidle.example\tnever\nblocked.txt:3\t!friend@idle.example\tnever\n"
	if text := g.lists(t, 0, "unused", "--since", day); !strings.HasPrefix(text, want) {
		t.Errorf("with a gate: %q, want %q", text, want)
	}
	if text := g.lists(t, 2, "unused", "--since", "30d"); !strings.Contains(text, "are not known") || strings.Contains(text, "never") {
		t.Errorf("of a time that is not known: %q", text)
	}
	g.stop()
	if text := g.lists(t, 0, "unused", "--since", day); !strings.HasPrefix(text, want) {
		t.Errorf("without a gate: %q, want %q", text, want)
	}
}

// TestAdminReload moves socket and metrics with a reload, and keeps them where the
// new ones cannot be had.
func TestAdminReload(t *testing.T) {
	t.Parallel()
	s := setup{}
	g := startGate(t, s)
	reload := func(admin, msg string) {
		t.Helper()
		s.more = admin
		before := len(g.records(msg))
		writeFile(t, filepath.Join(g.dir, "config.toml"), s.config())
		g.signal(1) // SIGHUP
		g.log.wait(msg, func(line string) bool {
			if parseRecord(line).matches(msg, nil) {
				before--
			}
			return before < 0
		})
	}
	reload("[admin]\nsocket = \"moved.sock\"\nmetrics_addr = \"127.0.0.1:0\"\n", "reloaded")
	if _, err := os.Lstat(g.socketPath()); err == nil {
		t.Error("the old socket is still there")
	}
	if s := g.status(t, "blocked"); s.From != "gate" {
		t.Errorf("status %+v", s)
	}
	metrics(t, http.DefaultClient, "http://"+g.waitRecord("metrics").string("addr")+"/metrics")

	reload("[admin]\nsocket = \"no/such/directory/s\"\n", "reload failed, nothing has changed")
	s.more = "[admin]\nsocket = \"moved.sock\"\n"
	writeFile(t, filepath.Join(g.dir, "config.toml"), s.config())
	if s := g.status(t, "blocked"); s.From != "gate" {
		t.Errorf("after a reload that failed: status %+v", s)
	}
}
