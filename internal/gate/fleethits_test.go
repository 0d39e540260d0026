package gate

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"spamgate/internal/admin"
	"spamgate/internal/config"
	"spamgate/internal/fleet"
	"spamgate/internal/fleet/fleettest"
)

// TestHitsAnswers gives a gate that asks for matches all kinds of answers.
func TestHitsAnswers(t *testing.T) {
	hash := "AAAAAAAAAAE=" // 1
	for _, c := range []struct {
		name   string
		pages  []string
		hashes int
		want   string // what is wrong
	}{
		{"no matches", []string{`{"known":"2026-11-01"}`}, 0, ""},
		{"one", []string{`{"known":"2026-11-01","total":1,"hashes":"` + hash + `"}`}, 1, ""},
		{"in two pages", []string{`{"id":"x","known":"2026-11-01","total":2,"hashes":"` + hash + `"}`, `{"known":"2026-11-01","total":2,"hashes":"` + hash + `"}`}, 2, ""},
		{"no JSON", []string{`hits`}, 0, "its answer is invalid"},
		{"no day", []string{`{"known":"\u001b[2J"}`}, 0, "its answer has no day"},
		{"half a hash", []string{`{"known":"2026-11-01","total":1,"hashes":"AAAA"}`}, 0, "its answer is invalid"},
		{"more than it says", []string{`{"known":"2026-11-01","hashes":"` + hash + `"}`}, 0, "its answer is invalid"},
		{"nothing of many", []string{`{"known":"2026-11-01","total":5}`}, 0, "its answer is invalid"},
		{"too many", []string{`{"known":"2026-11-01","total":2000001,"hashes":"` + hash + `"}`}, 0, "its answer is invalid"},
		{"another number", []string{`{"known":"2026-11-01","total":2,"hashes":"` + hash + `"}`, `{"known":"2026-11-01","total":3,"hashes":"` + hash + `"}`}, 1, "its answer is invalid"},
		{"a negative number", []string{`{"known":"2026-11-01","total":-1}`}, 0, "its answer is invalid"},
	} {
		a := &asking{rest: map[string]*restOfHits{}}
		a.fleet.Errors, a.fleet.Recent = map[string]string{}, map[string]string{}
		a.q.Since = "2026-11-01"
		for i, page := range c.pages {
			answer, err := parseHits([]byte(page))
			if err != nil {
				a.fail("mx2", err)
				break
			}
			if i == 0 {
				a.rest["mx2"] = &restOfHits{total: answer.Total}
			}
			a.take("mx2", answer)
		}
		if len(a.hashes) != c.hashes || !strings.Contains(a.fleet.Errors["mx2"], c.want) || (c.want == "") != slices.Contains(a.fleet.Gates, "mx2") || len(a.rest) > 0 {
			t.Errorf("%s: %d hashes, %+v, the rest %v", c.name, len(a.hashes), a.fleet, a.rest)
		}
	}
}

// TestKeptHits keeps more long answers than it may.
func TestKeptHits(t *testing.T) {
	var k keptHits
	now := time.Now()
	m := &matched{hashes: make([]uint64, maxHitsPage+1)}
	first := k.add(m, now)
	if k.get(first) != m || len(m.page(maxHitsPage).Hashes) != hashBytes {
		t.Error("the answer is not there")
	}
	for i := range maxHitsKept {
		k.add(&matched{}, now.Add(time.Duration(i+1)*time.Second))
	}
	if k.get(first) != nil || len(k.byID) != maxHitsKept {
		t.Errorf("%d answers are kept", len(k.byID))
	}
	k.add(m, now.Add(time.Hour))
	if len(k.byID) != 1 {
		t.Errorf("%d answers are kept after an hour", len(k.byID))
	}
}

// TestRoster expects gates that were in the fleet since a day, and those that are.
func TestRoster(t *testing.T) {
	s := fleettest.Start(t, nil)
	m, err := fleet.Open(fleet.Options{Name: "mx1", Servers: []string{s.URL()}, StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	f := &fleetHits{fleetPart: &fleetPart{config: func() *config.Config { return &config.Config{Fleet: config.Fleet{Name: "mx1"}} }}}
	for name, day := range map[string]string{"mx1": "2026-11-20", "mx2": "2026-11-20", "mx3": "2026-11-10", "odd": "x"} {
		value, err := json.Marshal(day)
		if err != nil {
			t.Fatal(err)
		}
		err = m.SetState(t.Context(), fleet.StateKey(stateGate, name), func(json.RawMessage) (json.RawMessage, error) { return value, nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	since, err := time.Parse(admin.Day, "2026-11-15")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := f.roster(t.Context(), m, since); err != nil || strings.Join(got, " ") != "mx2" {
		t.Errorf("%v, %v", got, err)
	}
}
