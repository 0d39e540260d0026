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
multimap { LISTED { type = "from"; filter = "email:addr"; regexp = true; map = "%[2]s"; } }
worker "normal" { bind_socket = "%[3]s"; count = 1; }
`

// TestRspamd asks rspamd, whose module multimap has an exported map.
func TestRspamd(t *testing.T) {
	t.Parallel()
	program := harness.Program(t, "rspamd", "rspamd")
	l := newList(t, "subtree", groupsFor(4, decisions()))
	file, _ := l.export(t, "rspamd")
	addr := harness.FreeAddr(t)
	conf := filepath.Join(l.dir, "rspamd.conf")
	harness.WriteFile(t, filepath.Join(l.dir, "rules.lua"), "require \"global_functions\" ()\n")
	harness.WriteFile(t, conf, fmt.Sprintf(rspamdConf, l.dir, file, addr))
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
	l.compare(t, func(sender string) (refused, asked bool) {
		if _, domain, _ := strings.Cut(sender, "@"); strings.ContainsAny(domain, "+ü") {
			return false, false // rspamd takes no such sender: "bad from header"
		}
		return askRspamd(t, client, addr, sender), true
	}, notForMaps)
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
	local, domain, at := strings.Cut(entry, "@")
	if entry[0] == '!' || !at || local == "" {
		return entry[0] == '!' || notForZones(entry)
	}
	return domain == "" || strings.Contains(local, `"`) || notForZones(domain)
}
