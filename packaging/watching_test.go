package packaging

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// promtool runs Prometheus' tool, which must succeed.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	stdout, stderr, code := harness.Run(t, exec.Command(harness.Program(t, "promtool", "prometheus"), args...))
	if code != 0 {
		t.Errorf("promtool %s: exit code %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestRules has promtool run the tests of the alerting rules.
func TestRules(t *testing.T) {
	promtool(t, "check", "rules", "prometheus/rules.yml")
	promtool(t, "test", "rules", "prometheus/rules_test.yml")
}

var (
	alertName  = regexp.MustCompile(`(?m)^ *- alert: (\w+)$`)
	quietAlert = regexp.MustCompile(`alertname: (\w+), eval_time: \w+, exp_alerts: \[\] }`)
	firedAlert = regexp.MustCompile(`alertname: (\w+)\n +eval_time: \w+\n +exp_alerts:\n +- exp_labels:`)
)

// TestRulesTested checks that the tests show each rule firing, and not firing.
func TestRulesTested(t *testing.T) {
	names := func(pattern *regexp.Regexp, text string) []string {
		found := map[string]bool{}
		for _, m := range pattern.FindAllStringSubmatch(text, -1) {
			found[m[1]] = true
		}
		return slices.Sorted(maps.Keys(found))
	}
	alerts, tests := names(alertName, read(t, "prometheus/rules.yml")), read(t, "prometheus/rules_test.yml")
	if fired := names(firedAlert, tests); !slices.Equal(fired, alerts) || len(alerts) == 0 {
		t.Errorf("the tests show %v firing, the rules are %v", fired, alerts)
	}
	if quiet := names(quietAlert, tests); !slices.Equal(quiet, alerts) {
		t.Errorf("the tests show %v not firing, the rules are %v", quiet, alerts)
	}
}

// dashboardQueries returns the queries of the dashboard, by the title of their panel, with
// values for its variables.
func dashboardQueries(t *testing.T) map[string]string {
	t.Helper()
	var dashboard struct {
		Templating struct {
			List []struct{ Name, Type, Query string }
		}
		Panels []struct {
			ID          int
			Title, Type string
			GridPos     struct{ X, Y, W, H int }
			Datasource  struct{ Type, UID string }
			Targets     []struct{ RefID, Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "grafana/spamgate.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	queries, ids := map[string]string{}, map[int]bool{}
	variables := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*")
	for _, p := range dashboard.Panels {
		if ids[p.ID] || p.Type != "row" && (len(p.Targets) == 0 || p.Datasource.UID != "${datasource}" || p.GridPos.X+p.GridPos.W > 24) {
			t.Errorf("panel %d, %q: it has the id or the place of another one, no query, or a fixed data source", p.ID, p.Title)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			name := fmt.Sprintf("%s, query %s", p.Title, target.RefID)
			if queries[name] = variables.Replace(target.Expr); strings.Contains(queries[name], "$") {
				t.Errorf("%s: a variable is not known: %s", name, target.Expr)
			}
		}
	}
	for _, v := range dashboard.Templating.List {
		if v.Type == "query" {
			m := regexp.MustCompile(`^label_values\((.*), \w+\)$`).FindStringSubmatch(v.Query)
			if m == nil {
				t.Fatalf("variable %s: %s", v.Name, v.Query)
			}
			queries["variable "+v.Name] = m[1]
		}
	}
	return queries
}

// TestDashboardQueries has promtool parse every query of the dashboard.
func TestDashboardQueries(t *testing.T) {
	var rules strings.Builder
	rules.WriteString("groups:\n  - name: dashboard\n    rules:\n")
	for i, query := range slices.Sorted(maps.Values(dashboardQueries(t))) {
		fmt.Fprintf(&rules, "      - record: query%d\n        expr: %q\n", i, query)
	}
	file := filepath.Join(t.TempDir(), "dashboard.yml")
	harness.WriteFile(t, file, rules.String())
	promtool(t, "check", "rules", file)
}

var (
	documentedMetric = regexp.MustCompile("(?m)^\\| `(spamgate_\\w+)` \\| (\\w+) \\|(.*?)\\|")
	usedMetric       = regexp.MustCompile(`(spamgate_\w+)(?:\{([^}]*)\})?`)
	usedLabel        = regexp.MustCompile(`(\w+)(?:=~|!~|!=|=)"`)
	ruleExpression   = regexp.MustCompile(`(?m)^ *expr: (?:\|\n((?: {10}.*\n)+)|(.*)\n)`)
	groupLabel       = regexp.MustCompile(`(?:by|without|ignoring|on) \(([\w, ]+)\)`)
)

// TestMetricsExist checks that rules and dashboard use only metrics, and labels, that the
// table in docs/monitoring.md has. TestMetricsDocument compares that table with a gate.
func TestMetricsExist(t *testing.T) {
	labels, all := map[string][]string{}, []string{"instance", "job", "le"}
	for _, m := range documentedMetric.FindAllStringSubmatch(read(t, "../docs/monitoring.md"), -1) {
		labels[m[1]] = append(strings.FieldsFunc(m[3], func(r rune) bool { return strings.ContainsRune("`, ", r) }), "instance", "job")
		all = append(all, labels[m[1]]...)
		if m[2] == "histogram" {
			labels[m[1]+"_bucket"] = append(slices.Clone(labels[m[1]]), "le")
		}
	}
	queries := dashboardQueries(t)
	for i, m := range ruleExpression.FindAllStringSubmatch(read(t, "prometheus/rules.yml"), -1) {
		queries[fmt.Sprintf("rule %d", i+1)] = m[1] + m[2]
	}
	if n := len(alertName.FindAllString(read(t, "prometheus/rules.yml"), -1)); queries[fmt.Sprintf("rule %d", n)] == "" {
		t.Fatalf("there are fewer expressions than rules (%d)", n)
	}
	for name, query := range queries {
		for _, m := range usedMetric.FindAllStringSubmatch(query, -1) {
			has := labels[m[1]]
			if has == nil {
				t.Errorf("%s: there is no metric %s: %s", name, m[1], query)
			}
			for _, label := range usedLabel.FindAllStringSubmatch(m[2], -1) {
				if has != nil && !slices.Contains(has, label[1]) {
					t.Errorf("%s: %s has no label %s, but %v", name, m[1], label[1], has)
				}
			}
		}
		for _, m := range groupLabel.FindAllStringSubmatch(query, -1) {
			for label := range strings.SplitSeq(m[1], ", ") {
				if !slices.Contains(all, label) {
					t.Errorf("%s: no metric has a label %s: %s", name, label, query)
				}
			}
		}
	}
}
