package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

func TestLastCount(t *testing.T) {
	for text, want := range map[string]int{
		"":                       0,
		"sess=1 quit=0 mesg=0\r": 0,
		"sess=1 quit=0 mesg=0\rsess=1 quit=0 mesg=1\r":            1,
		"sess=    20 quit=    19 mesg=  5000\r":                   5000,
		"sess=1 quit=0 mesg=12\rsess=2 quit=0 me":                 12,
		"a warning\nsess=1 quit=0 mesg=3\rsess=1 quit=1 mesg=4\r": 4,
	} {
		if got := lastCount([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestSpreadOf(t *testing.T) {
	for _, tt := range []struct {
		figures []float64
		want    spread
	}{
		{[]float64{3}, spread{3, 3, 3}},
		{[]float64{4, 1}, spread{2.5, 1, 4}},
		{[]float64{9, 1, 2}, spread{2, 1, 9}},
	} {
		if got := spreadOf(tt.figures); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.figures, got, tt.want)
		}
	}
}

// TestReport has a round in which the whole machine was slow. It shows in the
// times and not in the ratios.
func TestReport(t *testing.T) {
	runs := func(seconds ...float64) (m []measurement) {
		for _, s := range seconds {
			m = append(m, measurement{Seconds: s, CPU: s / 2})
		}
		return m
	}
	r := report{Rows: []row{{
		Workload: workload{5000, 4 << 10, 20, false},
		Runs: map[string][]measurement{
			direct: runs(1, 10, 1), haproxy: runs(2, 20, 2), postfix: runs(12, 120, 12), plain: runs(4, 40, 4), gate: runs(3, 30, 3),
		},
	}}}
	r.Rows = append(r.Rows, r.Rows[0], r.Rows[0])
	r.Refusals = []refusalRow{{Manner: "kept", Refusals: 5000, Rates: map[string][]float64{postfix: {1000, 100, 1000}, gate: {3000, 300, 3000}}}}
	us := func(v ...float64) []float64 { return v }
	r.Latency = &latencyRow{MessagesPerSecond: 4000, Messages: 5000,
		P50: map[string][]float64{direct: us(50), haproxy: us(70), gate: us(90)},
		P99: map[string][]float64{direct: us(200, 900, 200), haproxy: us(300, 1000, 300), gate: us(600, 1300, 600)}}
	var b strings.Builder
	if err := r.writeText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"5,000 × 4 KiB, 20 sessions, a connection each:\n",
		"| direct   | 1.00 s (1.00–10.00)    |                    |                    |               |\n",
		"| HAProxy  | 2.00 s (2.00–20.00)    | 2.00 (2.00–2.00)   |                    | 200 µs        |\n",
		"| spamgate | 3.00 s (3.00–30.00)    | 3.00 (3.00–3.00)   | 1.50 (1.50–1.50)   | 300 µs        |\n",
		"| Postfix  | 12.00 s (12.00–120.00) | 12.00 (12.00–12.00) | 6.00 (6.00–6.00)   |               |\n",
		"| spamgate | 3000 (300–3000) | 3.00 (3.00–3.00) |\n",
		"| spamgate | 90 µs | 600 µs (600–1300) | 400 µs (400–400) |\n",
		"| at most 0.90 × HAProxy | 1.50 × HAProxy | missed |\n",
		"| at most 0.25 × Postfix | 0.25 × Postfix | met |\n",
		"| at least 2.00 × Postfix | 3.00 × Postfix | met |\n",
		"| at most 300 µs | 400 µs | missed |\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, &b)
		}
	}
}

// TestSmallRun runs the whole with a few messages.
func TestSmallRun(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts servers")
	}
	if _, err := findTools(); err != nil {
		t.Skip(err)
	}
	if os.Geteuid() != 0 {
		t.Skip("Postfix is started by root only")
	}
	var out, progress strings.Builder
	code := run([]string{"--rounds", "1", "--messages", "20", "--json"}, &out, &progress)
	if code != 0 && strings.Contains(progress.String(), lmdbPackage) && os.Getenv("CI") == "" {
		t.Skip(progress.String())
	}
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, &progress)
	}
	var r report
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 3 {
		t.Fatalf("%d rows", len(r.Rows))
	}
	if len(r.Refusals) != len(manners) || len(r.Refusals[0].Rates[gate]) != 1 || r.Latency == nil || len(r.Latency.P99[gate]) != 1 {
		t.Errorf("refusals %v, latency %v", r.Refusals, r.Latency)
	}
	for _, row := range r.Rows {
		for _, name := range names {
			if len(row.Runs[name]) != 1 || row.Runs[name][0].Seconds <= 0 {
				t.Errorf("%s: no time for %s: %v", row.Workload, name, row.Runs)
			}
		}
	}
}

func TestBadOptions(t *testing.T) {
	for _, args := range [][]string{{"--rounds", "0"}, {"--messages", "9"}, {"--what"}, {"more"}} {
		var out, errs strings.Builder
		if code := run(args, &out, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("%v: exit code %d, %q", args, code, &errs)
		}
	}
}

// TestMain lets the test program be the plain proxy, too, as bench itself is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == plainCommand {
		os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}
