package exports

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"spamgate/internal/e2e/harness"
)

// rspamdConf has the module multimap alone.
const rspamdConf = `options {
	pidfile = "%[1]s/rspamd.pid";
	tempdir = "%[1]s";
	control_socket = "%[1]s/control";
	hs_cache_dir = "%[1]s";
	url_tld = "/usr/share/rspamd/effective_tld_names.dat";
	filters = "";
	dns { nameserver = ["127.0.0.1:1"]; }
}
logging { type = "console"; level = "warning"; }
actions { reject = 15; }
lua = "%[1]s/rules.lua";
modules { path = "/usr/share/rspamd/plugins/multimap.lua"; }
multimap { LISTED { type = "from"; map = "%[2]s"; %[4]s } }
worker "normal" { bind_socket = "%[3]s"; count = 1; }
`

// exportedMap is how multimap reads an exported map.
const exportedMap = `filter = "email:addr"; regexp = true;`

// TestRspamd asks rspamd, whose module multimap has an exported map.
func TestRspamd(t *testing.T) {
	t.Parallel()
	l := newList(t, "subtree", groupsFor(4, decisions()))
	file, _ := l.export(t, "rspamd")
	r := startRspamd(t, l.dir, file, exportedMap)
	l.compare(t, r.refuses, notForMaps)
}

// An rspamd is a running rspamd.
type rspamd struct {
	t      *testing.T
	client *http.Client
	addr   string
	pid    int // of the main process
}

// startRspamd starts an rspamd with a map, which ends with the test.
func startRspamd(t *testing.T, dir, file, how string) *rspamd {
	t.Helper()
	program := harness.Program(t, "rspamd", "rspamd")
	addr := harness.FreeAddr(t)
	conf := filepath.Join(dir, "rspamd.conf")
	harness.WriteFile(t, filepath.Join(dir, "rules.lua"), "require \"global_functions\" ()\n")
	harness.WriteFile(t, conf, fmt.Sprintf(rspamdConf, dir, file, addr, how))
	out := harness.NewOutput(t, "rspamd")
	cmd := exec.Command(program, "-f", "-i", "-c", conf)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM) // its workers end with it
		cmd.Wait()
	})
	client := &http.Client{Timeout: harness.WorkTimeout}
	harness.WaitFor(t, "rspamd to answer", func() bool {
		answer, err := client.Get("http://" + addr + "/ping")
		if err == nil {
			answer.Body.Close()
		}
		return err == nil
	})
	return &rspamd{t, client, addr, cmd.Process.Pid}
}

// refuses reports whether a sender is in the map. Rspamd takes some senders from nobody:
// "bad from header".
func (r *rspamd) refuses(sender string) (refused, asked bool) {
	if _, domain, _ := strings.Cut(sender, "@"); strings.ContainsAny(domain, "+ü") {
		return false, false
	}
	return askRspamd(r.t, r.client, r.addr, sender), true
}

// askRspamd reports whether a sender is in the map.
func askRspamd(t *testing.T, client *http.Client, addr, sender string) bool {
	t.Helper()
	r, err := http.NewRequest("POST", "http://"+addr+"/checkv2", strings.NewReader("Subject: test\n\ntest\n"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("From", sender)
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var result struct {
		Symbols map[string]any `json:"symbols"`
		Action  string         `json:"action"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&result); err != nil || result.Action == "" {
		t.Fatalf("%s: %s, %v", sender, answer.Status, err)
	}
	_, listed := result.Symbols["LISTED"]
	return listed
}

// notForMaps reports whether a map cannot have an entry.
func notForMaps(entry string) bool {
	local, domain, found := strings.Cut(entry, "@")
	if entry[0] == '!' || !found || local == "" {
		return entry[0] == '!' || notForZones(entry)
	}
	return domain == "" || strings.Contains(local, `"`) || notForZones(domain)
}
