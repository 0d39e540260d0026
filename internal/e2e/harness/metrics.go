package harness

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// SocketPath returns the path of the admin socket.
func (g *Gate) SocketPath() string { return filepath.Join(g.Dir, "state", "admin.sock") }

// ReadMetrics reads metrics and checks that they are well formed.
func ReadMetrics(t testing.TB, client *http.Client, url string) map[string]*dto.MetricFamily {
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
		if strings.HasPrefix(p.Metric, "spamgate_") { // the others are from client_golang
			t.Errorf("metric %s: %s", p.Metric, p.Text)
		}
	}
	return families
}

// MetricValue returns the value of the metric with those labels: "name", "value", ….
func MetricValue(t testing.TB, families map[string]*dto.MetricFamily, name string, labels ...string) float64 {
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

// SocketClient returns an HTTP client that connects to the gate's admin socket.
func (g *Gate) SocketClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			path := g.SocketPath()
			if len(path) > 100 { // too long for a socket address; on Linux there is a shorter one
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
