package doors

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"spamgate/internal/admin"
	"spamgate/internal/e2e/harness"
)

// kinds are the doors, each alone.
var kinds = []struct{ name, kind, table string }{
	{"policy service", "policy_service", "[[policy_service]]\nname = \"d\"\naddr = \"127.0.0.1:0\"\n"},
	{"policy service at a socket", "policy_service", "[[policy_service]]\nname = \"d\"\naddr = \"unix:d.sock\"\nsocket_mode = \"0660\"\n"},
	{"milter", "milter", "[[milter]]\nname = \"d\"\naddr = \"127.0.0.1:0\"\n"},
	{"milter at a socket", "milter", "[[milter]]\nname = \"d\"\naddr = \"unix:d.sock\"\n"},
	{"DNS", "dns", "[[dns_server]]\nname = \"d\"\naddr = \"127.0.0.1:0\"\nzone = \"bl.example.org\"\nttl = \"1s\"\n"},
}

// said is what people read of a kind of door.
var text = map[string]string{"policy_service": "policy service", "milter": "milter", "dns": "DNS server"}

// TestAlone runs a gate with each door alone. It has no next hop, is healthy, and answers by
// lists that change.
func TestAlone(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			g := startDoors(t, harness.Setup{Listen: harness.NoListener, Tables: k.table})
			addr := doorAddr(g, "d")
			listed := asker(t, k.kind, addr)
			if !listed("spam.example") || listed("example.com") {
				t.Error("it does not answer by the list")
			}
			harness.WriteFile(t, filepath.Join(g.Dir, "blocked.txt"), "other.example\n")
			harness.WaitFor(t, "the list to be live", func() bool { return listed("other.example") })
			if listed("spam.example") {
				t.Error("the old list is live, too")
			}

			var h admin.Health
			if err := json.Unmarshal([]byte(g.Command(t, 0, "health", "--json")), &h); err != nil {
				t.Fatal(err)
			}
			want := admin.Door{Door: k.kind, Name: "d", Address: addr}
			if !h.Healthy || len(h.Mail.Listeners) != 0 || len(h.Mail.NextHops) != 0 || len(h.Mail.Doors) != 1 || h.Mail.Doors[0] != want {
				t.Errorf("health: %+v, want %+v", h.Mail, want)
			}
			if health := g.Command(t, 0, "health"); !strings.Contains(strings.Join(strings.Fields(health), " "), "doors are open: "+addr+" ("+text[k.kind]+" d)") {
				t.Errorf("health: %q", health)
			}
			if ready, err := g.SocketClient().Get("http://gate/readyz"); err != nil || ready.StatusCode != 200 {
				t.Errorf("/readyz: %v, %v", ready, err)
			} else {
				ready.Body.Close()
			}
			for _, name := range []string{"mail", "state/lmtp.partial"} {
				if _, err := os.Lstat(filepath.Join(g.Dir, name)); err == nil {
					t.Errorf("there is %s, for a next hop that has no listener", name)
				}
			}
			families := harness.ReadMetrics(t, g.SocketClient(), "http://gate/metrics")
			for name, family := range families {
				if strings.HasPrefix(name, "spamgate_next_hop") && len(family.Metric) > 0 {
					t.Errorf("there is the metric %s", name)
				}
			}
			if k.kind == "dns" {
				if n := harness.MetricValue(t, families, "spamgate_dns_questions_total", "listener", "d", "outcome", "listed"); n < 2 {
					t.Errorf("%v questions for listed names, want 2 or more", n)
				}
			} else if n := harness.MetricValue(t, families, "spamgate_recipients_total", "listener", "d", "outcome", "listed"); n < 2 {
				t.Errorf("%v refused recipients, want 2 or more", n)
			}
		})
	}
}

// TestSocketFile has a gate killed, whose socket stays: the next one replaces it, sets the mode,
// and removes it in the end. A third one that is to have it, too, does not start.
func TestSocketFile(t *testing.T) {
	t.Parallel()
	s := harness.Setup{Listen: harness.NoListener, Tables: kinds[1].table + "[[policy_service]]\naddr = \"unix:second.sock\"\n"}
	g := startDoors(t, s)
	path := filepath.Join(g.Dir, "d.sock")
	g.Kill()
	g.Wait()
	if info, err := os.Lstat(path); err != nil || info.Mode() != os.ModeSocket|0o660 {
		t.Fatalf("a killed gate leaves %v, %v", info, err)
	}
	g = launchDoors(t, g.Dir)
	if !asker(t, "policy_service", doorAddr(g, "d"))("spam.example") {
		t.Error("the second gate does not answer")
	}

	third := harness.LaunchGate(t, harness.Setup{Listen: harness.NoListener, Tables: strings.ReplaceAll(
		"[[policy_service]]\naddr = \"unix:first.sock\"\n"+kinds[1].table, "d.sock", path)})
	if code := third.Wait(); code != 2 {
		t.Errorf("exit code %d of a gate whose socket another one has", code)
	}
	if text := third.Log.String(); !strings.Contains(text, "policy_service.addr: unix socket "+path+": another process answers there") {
		t.Errorf("it said %q", text)
	}
	if _, err := os.Lstat(filepath.Join(third.Dir, "first.sock")); err == nil {
		t.Error("its other socket is still there")
	}

	g.Command(t, 0, "health")
	if err := os.Remove(filepath.Join(g.Dir, "second.sock")); err != nil {
		t.Fatal(err)
	}
	if text := g.Command(t, 1, "health"); !strings.Contains(strings.Join(strings.Fields(text), " "), "second.sock is gone") {
		t.Errorf("health without a socket's file: %s", text)
	}

	g.Stop()
	for _, name := range []string{"d.sock", "second.sock"} {
		if _, err := os.Lstat(filepath.Join(g.Dir, name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
}

// TestReload changes what a reload can change of doors, and what it cannot.
func TestReload(t *testing.T) {
	t.Parallel()
	const more = "\n[[list]]\nname = \"more\"\npath = \"more.txt\"\n"
	s := harness.Setup{
		Lists: harness.BlockedLists + more, Files: map[string]string{"blocked.txt": "spam.example\n", "more.txt": "more.example\n"},
		Tables: kinds[1].table + "lists = [\"blocked\"]\n" + "[[dns_server]]\nname = \"dns\"\naddr = \"127.0.0.1:0\"\nzone = \"bl.example.org\"\n",
	}
	g := startDoors(t, s)
	policy, resolver := asker(t, "policy_service", doorAddr(g, "d")), doorAddr(g, "dns")
	if policy("more.example") {
		t.Error("a list counts that the door does not name")
	}
	s.Tables = strings.Replace(kinds[1].table, "0660", "0600", 1) + "lists = [\"more\"]\n" +
		"[[dns_server]]\nname = \"renamed\"\naddr = \"127.0.0.1:0\"\nzone = \"other.example.org\"\n" +
		"[[policy_service]]\nname = \"new\"\naddr = \"unix:new.sock\"\n"
	harness.WriteFile(t, filepath.Join(g.Dir, "config.toml"), s.Config())
	g.Signal(syscall.SIGHUP)
	g.WaitRecord("reloaded")
	if policy("spam.example") || !policy("more.example") {
		t.Error("the door has its old lists")
	}
	for zone, want := range map[string]string{"bl": "REFUSED", "other": "NOERROR 127.0.0.2"} {
		if text, err := askDNS("udp", resolver, "spam.example."+zone+".example.org"); text != want || err != nil {
			t.Errorf("zone %s: %s, %v; want %s", zone, text, err, want)
		}
	}
	g.WaitRecord("this change needs a restart, or SIGUSR2", "key", "dns_server.name", "listener", "dns")
	g.WaitRecord("a new door is not open yet: this needs a restart, or SIGUSR2", "door", "policy_service", "listener", "new")
	harness.WaitFor(t, "the socket's mode", func() bool {
		info, err := os.Lstat(filepath.Join(g.Dir, "d.sock"))
		return err == nil && info.Mode().Perm() == 0o600
	})

	s.Tables = ""
	harness.WriteFile(t, filepath.Join(g.Dir, "config.toml"), s.Config())
	g.Signal(syscall.SIGHUP)
	for _, door := range []string{"d", "dns"} {
		g.WaitRecord("a door that is not configured any more stays open: closing it needs a restart, or SIGUSR2", "listener", door)
	}
	if !policy("more.example") {
		t.Error("a door that is gone from the file does not go on")
	}
}
