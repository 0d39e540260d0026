package monitoring

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// TestFailuresShow produces failures that the alerting rules are about, one after the other,
// and waits until the metrics show each: a certificate near its end, a limit that is hit, a
// list that is held, a next hop that is gone.
func TestFailuresShow(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t)
	expires := time.Now().Add(72 * time.Hour).Truncate(time.Second)
	cert, key := harness.NewPEMUntil(t, "gate.example", 1, expires)
	file := filepath.Join(t.TempDir(), "gate.pem")
	harness.WriteFile(t, file, cert+key)
	g := harness.StartGate(t, harness.Setup{
		NextHop: "smtp://" + sink.Addr(),
		Keys:    map[string]string{"listen": fmt.Sprintf("tls = \"starttls\"\ntls_cert = %q\ntls_key = %q\nclient_messages_per_minute = 2", file, file)},
		Files:   map[string]string{"blocked.txt": harness.NumberedList(1500)},
	})
	client, nextHop := g.SocketClient(), "smtp://"+sink.Addr()
	metrics := func() map[string]*dto.MetricFamily { return harness.ReadMetrics(t, client, "http://gate/metrics") }
	shows := func(what string, value float64, name string, labels ...string) {
		t.Helper()
		harness.WaitFor(t, what, func() bool { return harness.MetricValue(t, metrics(), name, labels...) == value })
	}

	shows("the end of the certificate", float64(expires.Unix()), "spamgate_certificate_not_after_seconds", "listener", "", "file", file)
	shows("a state directory that is usable", 1, "spamgate_state_dir_usable")
	shows("the next hop to be up", 1, "spamgate_next_hop_up", "next_hop", nextHop)

	mail := harness.MustDial(t, g.Addr)
	mail.MustSend(t, "a@example.com", "b@example.net", harness.SmallMessage("a@example.com", "1"))
	shows("a recipient", 1, "spamgate_recipients_total", "outcome", "accepted")
	shows("the time of a reply", 1, "spamgate_next_hop_duration_seconds", "stage", "reply")

	harness.WriteFile(t, filepath.Join(g.Dir, "blocked.txt"), harness.NumberedList(100))
	shows("a held list", 1, "spamgate_list_held", "list", "blocked")

	sink.Close()
	mail.Want(t, "MAIL FROM:<a@example.com>", "250")
	mail.Want(t, "RCPT TO:<b@example.net>", "451")
	mail.Want(t, "RCPT TO:<c@example.net>", "451")
	shows("the next hop to be down", 0, "spamgate_next_hop_up", "next_hop", nextHop)
	shows("the failed recipients", 2, "spamgate_recipients_total", "outcome", "failed")
	shows("one failed message", 1, "spamgate_messages_total", "outcome", "failed")
	shows("one failed transaction", 1, "spamgate_next_hop_failures_total", "stage", "connect")

	mail.Want(t, "RSET", "250")
	mail.Want(t, "MAIL FROM:<a@example.com>", "451")
	shows("a limit", 1, "spamgate_limited_total", "limit", "messages_per_minute", "of", "client")
}

// TestPromtoolMetrics has promtool check the metrics that the gate serves over TCP.
func TestPromtoolMetrics(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(harness.Program(t, "promtool", "prometheus"), "check", "metrics")
	addr := harness.FreeAddr(t)
	harness.StartGate(t, harness.Setup{Tables: fmt.Sprintf("[admin]\nmetrics_addr = %q\n", addr)})
	response, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	cmd.Stdin = response.Body
	if stdout, stderr, code := harness.Run(t, cmd); code != 0 || stdout+stderr != "" {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}
