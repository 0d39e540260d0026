package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
	"spamgate/internal/config"
	"spamgate/internal/setup"
)

const oneList = `
[[list]]
name = "blocked"
path = "blocked.txt"
`

// liveEngine returns the Engine of a Store that follows a configuration's lists.
func liveEngine(t *testing.T, c *config.Config) (*Engine, *store.Store) {
	t.Helper()
	lists, err := setup.BlocklistConfig(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), lists)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return New(Options{Config: func() *config.Config { return c }, Set: s.Set}), s
}

// TestEngineLive: many ask while the lists change. Each answer is that of one version, and
// after a change it is that of the new one. None is counted as mail.
func TestEngineLive(t *testing.T) {
	c := load(t, oneList, map[string]string{"blocked.txt": "bad0.example  # version 0\n"})
	e, s := liveEngine(t, c)
	stop := make(chan struct{})
	var asking sync.WaitGroup
	for i := range 4 {
		asking.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				a, err := e.Address(t.Context(), Question{Address: "a@bad0.example", Trace: i%2 == 0})
				if err != nil {
					t.Error(err)
					return
				}
				var out bytes.Buffer
				a.Print(&out)
				if listed := strings.Contains(out.String(), "version 0"); listed != (a.Action == verdict.Reject) {
					t.Errorf("%s, but %s", a.Action, &out)
				}
			}
		})
	}
	for i := range 10 {
		text := fmt.Sprintf("bad%d.example  # version %d\n", i%2, i%2)
		if err := os.WriteFile(c.Lists[0].Path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.Rescan(t.Context()); err != nil {
			t.Fatal(err)
		}
		for k := range 2 {
			a, err := e.Address(t.Context(), Question{Address: fmt.Sprintf("a@bad%d.example", k)})
			if err != nil {
				t.Fatal(err)
			}
			if want := i%2 == k; a.Listed != want {
				t.Errorf("version %d: bad%d.example is listed: %v", i%2, k, a.Listed)
			}
		}
	}
	close(stop)
	asking.Wait()
	if n := s.Set().Lookups(); n != 0 {
		t.Errorf("%d lookups were counted", n)
	}
}

// TestEngineTrace: a running gate's own lists are told by their generation.
func TestEngineTrace(t *testing.T) {
	c := load(t, oneList, map[string]string{"blocked.txt": "bad.example  # bulk\n"})
	e, s := liveEngine(t, c)
	a, err := e.Address(t.Context(), Question{Address: "a@bad.example", Trace: true})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	a.Print(&out)
	for _, want := range []string{
		"a@bad.example: reject\n",
		fmt.Sprintf("  lists     generation %d, 1 entry\n", s.Set().Generation()),
		"the list's match: reject",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
	text, err := json.Marshal(a.JSON)
	if err != nil {
		t.Fatal(err)
	}
	var traced tracedAddress
	if err := json.Unmarshal(text, &traced); err != nil || traced.Generation != s.Set().Generation() || traced.Action != "reject" {
		t.Errorf("%s, %v", text, err)
	}
}

// TestEngineRefuses: what is no question is an error, in words without flags.
func TestEngineRefuses(t *testing.T) {
	e := engineOf(t, "policy.recipient_domains = [\"example.net\"]\n"+oneList, map[string]string{"blocked.txt": ""})
	for _, tt := range []struct {
		q    Question
		want string
	}{
		{Question{Address: "no address"}, `"no address" is not an address: no domain`},
		{Question{Address: "a@b.example", Listener: "smpt"}, `there is no listener or door "smpt"`},
		{Question{Address: "a@b.example", Recipients: []string{"@example.net"}}, `recipient "@example.net" is a domain`},
		{Question{Address: "a@b.example", Recipients: []string{"ann@example.org"}}, `recipient "ann@example.org" is refused whoever sends`},
		{Question{Address: strings.Repeat("a", maxAddress+1)}, "an address of 4097 bytes"},
		{Question{Address: "a@b.example", Recipients: make([]string, maxRecipients+1)}, "1001 recipients"},
	} {
		if _, err := e.Address(t.Context(), tt.q); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.40q: %v, want %s", tt.q.Address, err, tt.want)
		}
	}
	a, err := e.Address(t.Context(), Question{Address: "a@b.example", Recipients: []string{"ann@example.org"}, Past: true})
	if err != nil || a.Listed {
		t.Errorf("a recipient of the past: %+v, %v", a, err)
	}
}
