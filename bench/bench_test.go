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
			m = append(m, measurement{Seconds: s, CPU: s / 2, System: s / 4})
		}
		return m
	}
	r := report{Rows: []row{{
		Name:     "each",
		Workload: workload{5000, 4 << 10, 20, false},
		Runs: map[string][]measurement{
			direct: runs(1, 10, 1), haproxy: runs(2, 20, 2), postfix: runs(12, 120, 12), plain: runs(4, 40, 4),
			gateNone: runs(1.8, 18, 1.8), gateXforward: runs(2, 20, 2), gateAuto: runs(3, 30, 3),
		},
	}}}
	r.Rows = append(r.Rows, r.Rows[0], r.Rows[0])
	with := runs(2.2, 22, 2)
	with[0].Late, with[1].Late, with[2].Late = 0.05, 0.3, 0.01
	r.Features = featureRow{r.Rows[0].Workload, map[string][]measurement{gateBare: runs(2, 20, 2), gateHistory: with, gateFleet: runs(2.1, 21, 2.1)}}
	each := func(postfixes, gates []float64) map[string][]float64 {
		return map[string][]float64{postfix: postfixes, gateAuto: gates}
	}
	us := func(v ...float64) []float64 { return v }
	r.Refusals = []refusalRow{{Manner: "kept", Refusals: 5000, Rates: each(us(1000, 100, 1000), us(3000, 300, 3000))}}
	r.Flood = floodRow{Clients: 50, Refusals: 5000,
		Rates: each(us(2000, 200, 2000), us(5000, 500, 5000)), CPU: each(us(600, 6000, 600), us(200, 2000, 200)), Generator: each(us(.1, .1, .2), us(.2, .3, .3))}
	shares := us(.3, .3, .4)
	r.Latency = latencyRow{HalfLoad: 6000, MessagesPerSecond: 4000, Messages: 5000,
		P50: map[string][]float64{direct: us(50), haproxy: us(70), gateNone: us(90), gateXforward: us(91), gateAuto: us(92)},
		P99: map[string][]float64{direct: us(200, 900, 200), haproxy: us(300, 1000, 300), gateNone: us(390, 1300, 390),
			gateXforward: us(400, 1300, 400), gateAuto: us(600, 2000, 600)},
		Generator: map[string][]float64{direct: shares, haproxy: shares, gateNone: shares, gateXforward: shares, gateAuto: shares}}
	r.Idle = map[string]idleness{haproxy: {20, 0}, gateNone: {20, 0.01}, gateAuto: {20, 0.02}}
	written := func() string {
		var b strings.Builder
		if err := r.writeText(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	text := written()
	for _, want := range []string{
		"each: 5,000 × 4 KiB, 20 sessions, a connection each, 3 rounds:\n",
		"| direct            | 1.00 s (1.00–10.00)    |                    |                    |               |            |                    |\n",
		"| HAProxy           | 2.00 s (2.00–20.00)    | 2.00 (2.00–2.00)   |                    | 200 µs        | 100 µs     |                    |\n",
		"| spamgate auto     | 3.00 s (3.00–30.00)    | 3.00 (3.00–3.00)   | 1.50 (1.50–1.50)   | 300 µs        | 150 µs     | 1.50 (1.50–1.50)   |\n",
		"| Postfix           | 12.00 s (12.00–120.00) | 12.00 (12.00–12.00) | 6.00 (6.00–6.00)   | 1200 µs       | 600 µs     | 6.00 (6.00–6.00)   |\n",
		"is committed, 0.05 s (0.01–0.30) after the last message; fleet",
		"| spamgate bare | 2.00 s (2.00–20.00) |  | 200 µs |  |\n",
		"| spamgate history | 2.20 s (2.00–22.00) | 1.10 (1.00–1.10) | 220 µs | 1.10 (1.00–1.10) |\n",
		"| kept | spamgate auto | 3000 (300–3000) | 3.00 (3.00–3.00) |\n",
		"| spamgate auto | 5000 (500–5000) | 2.50 (2.50–2.50) | 200 µs | 30% |\n",
		"waits for its reply, 3 rounds, 10 sessions",
		"| spamgate none | 90 µs | 390 µs (390–1300) | 1.30 (1.30–1.30) | 30% |\n",
		"| each: spamgate none | at most 0.90 × HAProxy | 0.90 × HAProxy | met |\n",
		"| the same: spamgate xforward | at most 0.95 × HAProxy | 1.00 × HAProxy | missed |\n",
		"| the same: spamgate auto | at most 1.00 × HAProxy | 1.50 × HAProxy | missed |\n",
		"| the same, CPU a message: spamgate none | at most 1.20 × HAProxy | 0.90 × HAProxy | met |\n",
		"| at least 2.50 × Postfix | 2.50 × Postfix | met |\n",
		"to the last row in the history: spamgate history | at most 1.15 × spamgate bare | 1.10 × spamgate bare | met |\n",
		"in a fleet: spamgate fleet | at most 1.05 × spamgate bare | 1.05 × spamgate bare | met |\n",
		"half load: spamgate none | at most 1.30 × HAProxy | 1.30 × HAProxy | met |\n",
		"at most 0.10% of a core (spamgate auto)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	const warning = "The generator took up to"
	if strings.Contains(text, warning) {
		t.Errorf("a warning of the generator, which took less than a third:\n%s", text)
	}
	r.Latency.Generator[gateAuto] = us(.3, .4, .4)
	if text := written(); !strings.Contains(text, warning+" 40% of the machine") {
		t.Errorf("no warning of a generator that took 40%%:\n%s", text)
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
	if len(r.Rows) != 4 {
		t.Fatalf("%d rows", len(r.Rows))
	}
	if len(r.Refusals) != len(manners) || len(r.Refusals[0].Rates[gateAuto]) != 1 || len(r.Flood.Rates[gateAuto]) != 1 {
		t.Errorf("refusals %v, flood %v", r.Refusals, r.Flood)
	}
	for _, g := range featureGates {
		if len(r.Features.Runs[g.name]) != 1 || r.Features.Runs[g.name][0].CPU <= 0 {
			t.Errorf("no time for %s: %v", g.name, r.Features)
		}
	}
	for _, name := range latencyTargets[:len(latencyTargets)-1] { // without gateBefore
		if len(r.Latency.P99[name]) != 1 || r.Latency.Generator[name][0] <= 0 {
			t.Errorf("no latency of %s: %v", name, r.Latency)
		}
	}
	for _, row := range r.Rows {
		targets := hopNames
		if !row.Postfix {
			targets = []string{direct, haproxy, postfix, plain, gateNone, gateXforward, gateAuto}
		}
		for _, name := range targets {
			if len(row.Runs[name]) != 1 || row.Runs[name][0].Seconds <= 0 {
				t.Errorf("%s: no time for %s: %v", row.Workload, name, row.Runs)
			}
			if cpu := row.Runs[name][0].CPU; (cpu > 0) != (name != direct) {
				t.Errorf("%s: %s has used %v s of processor time", row.Workload, name, cpu)
			}
		}
	}
}

// TestRowFails has targets that do not listen. Each row says what failed, and the next is measured.
func TestRowFails(t *testing.T) {
	addrs, err := freeAddrs(1)
	if err != nil {
		t.Fatal(err)
	}
	s := &servers{idle: map[string]idleness{}, targets: []target{{name: postfix, addr: addrs[0]}, {name: gateAuto, addr: addrs[0]}}}
	r := report{Rows: make([]row, 3)}
	var progress strings.Builder
	err = s.measureRows(t.Context(), nil, options{rounds: 1, messages: 10, only: []string{"refusals", "flood"}}, &r, &progress)
	for _, want := range []string{"bench/run --only refusals repeats", "bench/run --only flood repeats"} {
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(progress.String(), want) {
			t.Errorf("error %v, progress %s, want %q", err, &progress, want)
		}
	}
	var out strings.Builder
	if err := r.writeText(&out); err != nil || strings.Contains(out.String(), "NaN") {
		t.Errorf("%v\n%s", err, &out)
	}
}

func TestBadOptions(t *testing.T) {
	for _, args := range [][]string{{"--rounds", "0"}, {"--messages", "9"}, {"--only", "keep"}, {"--what"}, {"more"}} {
		var out, errs strings.Builder
		if code := run(args, &out, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("%v: exit code %d, %q", args, code, &errs)
		}
	}
}

// TestMain lets the test program be the plain proxy and the generator, too, as bench
// itself is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == plainCommand || os.Args[1] == generatorCommand) {
		os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}
