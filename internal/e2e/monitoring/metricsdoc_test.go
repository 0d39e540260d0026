package monitoring

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/publish"
)

// documentedMetric matches a line of the table of metrics in docs/monitoring.md.
var documentedMetric = regexp.MustCompile("(?m)^\\| `(spamgate_[a-z_]+)` \\| ([a-z]+) \\|(.*?)\\|")

// TestMetricsDocument compares the table of metrics in docs/monitoring.md with the
// metrics of a gate: names, types and labels.
func TestMetricsDocument(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, m := range documentedMetric.FindAllStringSubmatch(string(page), -1) {
		documented[m[1]] = m[2] + " " + strings.TrimSpace(strings.ReplaceAll(m[3], "`", ""))
	}

	// Lists from URLs have their own metrics, and so have lists that others fetch.
	published := t.TempDir()
	secret := filepath.Join(t.TempDir(), "publish.key")
	key, err := publish.NewKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	list := publish.List{Dir: published, Name: "list", Key: key, Expires: publish.DefaultExpires}
	if _, err := list.Publish(time.Now(), func(w io.Writer) error { _, err := fmt.Fprintln(w, "fetched.example"); return err }); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(published)))
	defer server.Close()
	cert := harness.NewCertificate(t, "gate.example") // certificates, too
	keys := map[string]string{"listen": fmt.Sprintf("tls = \"starttls\"\ntls_cert = %q\ntls_key = %q", cert.Both, cert.Both)}
	g := harness.StartGate(t, harness.Setup{Keys: keys, Files: map[string]string{"blocked.txt": "spam.example\n", "domains": "example.net\n"}, Tables: "[policy]\nrecipient_domains = \"file:domains\"\n[[dns_server]]\naddr = \"127.0.0.1:0\"\nzone = \"bl.example\"\n[resolver]\naddr = \"127.0.0.1:1\"\n[fleet]\nservers = \"nats://" + harness.StartNATS(t).Addr + "\"\n" + fmt.Sprintf("[publish]\naddr = \"127.0.0.1:0\"\ntls_cert = %q\ntls_key = %q\nkey = %q\n", cert.Both, cert.Both, secret), Lists: harness.BlockedLists + fmt.Sprintf("[[list]]\nname = \"fetched\"\nurl = \"%s/list\"\npublic_key = %q\nallow_http = true\n[[list]]\nname = \"published\"\nmanaged = true\npublish = true\n[[list]]\nname = \"asked\"\ndns_zone = \"dbl.example\"\n[[list]]\nname = \"shared\"\nmanaged = true\nfleet = true\n", server.URL, key.Public().String())})
	if _, err := harness.MustDial(t, g.Addr).Verdict("x@spam.example", "ann@example.net"); err != nil {
		t.Fatal(err) // the history has metrics of its rows
	}
	client := g.SocketClient()
	missing := func(families map[string]*dto.MetricFamily) bool { // what may begin after the gate has opened
		return families["spamgate_list_fetched_timestamp_seconds"] == nil ||
			families["spamgate_list_published_timestamp_seconds"] == nil || families["spamgate_decisions_oldest_seconds"] == nil || families["spamgate_fleet_servers"] == nil
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	families := harness.ReadMetrics(t, client, "http://gate/metrics")
	for late := time.Now().Add(harness.WorkTimeout); missing(families) && time.Now().Before(late); <-tick.C {
		families = harness.ReadMetrics(t, client, "http://gate/metrics")
	}
	given := map[string]string{}
	for name, family := range families {
		if strings.HasPrefix(name, "spamgate_") {
			given[name] = strings.ToLower(family.GetType().String()) + " " + labelsOf(family)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if documented[name] != given[name] {
			t.Errorf("docs/monitoring.md has %q of %s, which is a %q", documented[name], name, given[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(documented)) {
		if given[name] == "" {
			t.Errorf("docs/monitoring.md has %s, which does not exist", name)
		}
	}
}

// labelsOf returns the names of a metric's labels.
func labelsOf(family *dto.MetricFamily) string {
	var names []string
	for _, label := range family.Metric[0].Label {
		names = append(names, label.GetName())
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
