package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"spamgate/internal/managed"
	"spamgate/internal/unixsocket"
)

func TestCalls(t *testing.T) {
	gate := &fakeGate{}
	c := dial(t, listen(t, gate).options.Socket.Path)
	ctx := context.Background()

	if s, err := Call(ctx, c, OpStatus, None{}); err != nil || s.From != FromGate || s.Generation != 7 || len(s.Lists) != 1 || s.Lists[0].Entries != 3 {
		t.Errorf("Status: %+v, %v", s, err)
	}
	if r, err := Call(ctx, c, OpRescan, None{}); err != nil || r.Generation != 8 || !slices.Equal(r.Failed, []Failed{{List: "blocked", Error: "shrunk", Held: true}}) {
		t.Errorf("Rescan: %+v, %v", r, err)
	}
	if a, err := Call(ctx, c, OpAccept, AcceptRequest{SHA256: "abc", Why: "it is right"}, "blocked"); err != nil || a != (Accepted{9, 2, 5}) {
		t.Errorf("Accept: %+v, %v", a, err)
	}
	if !slices.Equal(gate.accepted, []string{"abc"}) {
		t.Errorf("accepted %q", gate.accepted)
	}
	if _, err := Call(ctx, c, OpAccept, AcceptRequest{SHA256: "abc"}, "a/../b"); !errors.Is(err, ErrNoList) || !strings.Contains(err.Error(), `"a/../b"`) {
		t.Errorf("Accept of no list: %v, want %v", err, ErrNoList)
	}
	if _, err := Call(ctx, c, OpAccept, AcceptRequest{}, "blocked"); !errors.Is(err, ErrNothingHeld) {
		t.Errorf("Accept of nothing: %v, want %v", err, ErrNothingHeld)
	}
	pin, err := Call(ctx, c, OpPin, PinRequest{SHA256: "abc", Entries: 5, Why: "outbreak"}, "blocked")
	if err != nil || pin.Generation != 10 || pin.Pinned == nil || *pin.Pinned != (Pinned{SHA256: "abc", Entries: 5, Who: fmt.Sprint(os.Getuid()), Why: "outbreak"}) {
		t.Errorf("Pin: %+v, %v", pin.Pinned, err)
	}
	if _, err := Call(ctx, c, OpUnpin, UnpinRequest{}, "blocked"); !errors.Is(err, ErrNotPinned) {
		t.Errorf("Unpin: %v, want %v", err, ErrNotPinned)
	}
	if r, err := Call(ctx, c, OpHandover, HandoverRequest{60}); err != nil || r != (HandedOver{Old: Process{PID: 7}, New: Process{PID: 8}, Seconds: 60}) {
		t.Errorf("Handover: %+v, %v", r, err)
	}
	if _, err := Call(ctx, c, OpHandover, HandoverRequest{}); !errors.Is(err, ErrHandingOver) || !strings.HasSuffix(err.Error(), " to process 8") {
		t.Errorf("Handover during a handover: %v, want %v", err, ErrHandingOver)
	}
	for _, timeout := range []time.Duration{-1, MaxHandover + 1e9} {
		if _, err := Call(ctx, c, OpHandover, HandoverRequest{timeout.Seconds()}); !errors.Is(err, ErrRequest) {
			t.Errorf("Handover within %v: %v, want %v", timeout, err, ErrRequest)
		}
	}
	record := AuditRecord{SudoUser: "admin", Command: "add", List: "blocked", What: "spam.example", Why: "complaints"}
	if _, err := Call(ctx, c, OpAudit, record); err != nil {
		t.Error(err)
	}
	if !slices.Equal(gate.audited, []AuditRecord{record}) {
		t.Errorf("audited %+v", gate.audited)
	}
	if _, err := Call(ctx, c, OpAudit, AuditRecord{Command: "add"}); !errors.Is(err, ErrRequest) {
		t.Errorf("Audit of half a record: %v, want %v", err, ErrRequest)
	}
	if runtime.GOOS == "linux" {
		if by := gate.by[0]; by.UID != os.Getuid() || by.SudoUser != "admin" || by.Through != managed.ThroughCommand {
			t.Errorf("the caller is %+v", by)
		}
	}
}

func TestUnused(t *testing.T) {
	since := time.Date(2026, 3, 1, 23, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		n    int
		fail error
	}{{0, nil}, {1, nil}, {5000, nil}, {3, errors.New("damaged")}} {
		c := dial(t, listen(t, &fakeGate{unused: test.n, fail: test.fail}).options.Socket.Path)
		var head UnusedHeader
		var lines []int
		end, err := c.Unused(context.Background(), "blocked", since, test.n == 1,
			func(h UnusedHeader) error { head = h; return nil },
			func(e UnusedEntry) error { lines = append(lines, e.Line); return nil })
		if (err == nil) != (test.fail == nil) || err != nil && err.Error() != test.fail.Error() {
			t.Errorf("error %v, want %v", err, test.fail)
		}
		if head.List != "blocked" || head.Since != "2026-03-01" || head.Known != "2026-01-02" || (head.Fleet == nil) != (test.n == 1) || head.Fleet != nil && head.Fleet.Complete() {
			t.Errorf("header %+v", head)
		}
		if len(lines) != test.n || test.n > 0 && lines[test.n-1] != test.n {
			t.Errorf("%d entries, want %d", len(lines), test.n)
		}
		if end.Unused != uint64(test.n) || end.Entries != 10 {
			t.Errorf("end %+v", end)
		}
	}
	c := dial(t, listen(t, &fakeGate{unused: 10}).options.Socket.Path)
	stop := errors.New("enough")
	_, err := c.Unused(context.Background(), "blocked", since, false, func(UnusedHeader) error { return nil }, func(UnusedEntry) error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("error %v, want %v", err, stop)
	}
	if _, err := c.Unused(context.Background(), "other", since, false, nil, nil); !errors.Is(err, ErrNoList) {
		t.Errorf("another list: %v, want %v", err, ErrNoList)
	}
}

// TestBadRequests sends requests that no Client sends: each response is JSON.
func TestBadRequests(t *testing.T) {
	c := dial(t, listen(t, &fakeGate{}).options.Socket.Path)
	tests := []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/", "", 404, "/v1/status"},
		{"GET", "/v2/status", "", 404, "there is no /v2/status"},
		{"GET", "/metrics", "", 404, "no /metrics"},
		{"POST", "/v1/status", "", 405, "use GET"},
		{"DELETE", "/v1/rescan", "", 405, "use POST"},
		{"GET", "/v1/lists/blocked/accept", "", 405, "use POST"},
		{"POST", "/v1/lists/blocked/accept", "no JSON", 400, "invalid character"},
		{"POST", "/v1/lists/blocked/accept", `{"sha265":"x"}`, 400, "sha265"},
		{"POST", "/v1/lists/blocked/accept", `{"sha256":"x"} {}`, 400, "follows"},
		{"POST", "/v1/lists/blocked/accept", `{"sha256":"x","sha256":"y"}`, 400, `"sha256" stands there twice`},
		{"POST", "/v1/lists/blocked/accept", "", 409, "nothing is held"},
		{"POST", "/v1/lists/other/accept", "", 404, "no such list"},
		{"POST", "/v1/lists/blocked/accept", `{"why":"` + strings.Repeat("x", maxBody) + `"}`, 413, "larger than"},
		{"GET", "/v1/lists/blocked/unused", "", 400, "not a day"},
		{"GET", "/v1/lists/blocked/unused?since=yesterday", "", 400, `"yesterday"`},
		{"GET", "/v1/lists/other/unused?since=2026-01-01", "", 404, "no such list"},
	}
	for _, test := range tests {
		r, err := http.NewRequest(test.method, "http://gate"+test.path, strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		response := raw(t, c, r)
		body, _ := io.ReadAll(response.Body)
		var text wireError
		if err := json.Unmarshal(body, &text); err != nil {
			t.Errorf("%s %s: %q is no JSON: %v", test.method, test.path, body, err)
			continue
		}
		if response.StatusCode != test.status || !strings.Contains(text.Error, test.want) {
			t.Errorf("%s %s: %d %q, want %d with %q", test.method, test.path, response.StatusCode, text.Error, test.status, test.want)
		}
		if allow := response.Header.Get("Allow"); (allow != "") != (test.status == 405) {
			t.Errorf("%s %s: Allow: %q", test.method, test.path, allow)
		}
	}
}

// TestLogged checks that the log names the caller of a change.
func TestLogged(t *testing.T) {
	var log syncBuffer
	s := listenAt(t, Options{
		Gate:   &fakeGate{},
		Socket: unixsocket.Socket{Path: filepath.Join(t.TempDir(), "s"), Mode: 0o600},
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	c := dial(t, s.options.Socket.Path)
	if _, err := Call(context.Background(), c, OpAccept, AcceptRequest{SHA256: "abc", Why: "it is right"}, "blocked"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"list=blocked", `why="it is right"`, fmt.Sprintf("by.uid=%d", os.Getuid()), fmt.Sprintf("by.pid=%d", os.Getpid())} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, &log)
		}
	}
}

// TestCloseWhileAsked closes a server during a request.
func TestCloseWhileAsked(t *testing.T) {
	gate := &fakeGate{wait: make(chan struct{})}
	s := listen(t, gate)
	c := dial(t, s.options.Socket.Path)
	asked := make(chan error, 1)
	go func() {
		_, err := Call(context.Background(), c, OpRescan, None{})
		asked <- err
	}()
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	close(gate.wait)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if err := <-asked; err != nil && !errors.Is(err, ErrNotRunning) {
		t.Errorf("Rescan: %v, want none or %v", err, ErrNotRunning)
	}
}

// TestEnding checks the response to a request that Close cancels.
func TestEnding(t *testing.T) {
	s := listen(t, &fakeGate{wait: make(chan struct{})})
	s.cancel() // as Close does when it has waited enough
	if _, err := Call(context.Background(), dial(t, s.options.Socket.Path), OpRescan, None{}); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Rescan: %v, want %v", err, ErrNotRunning)
	}
}

func TestMetricsRoute(t *testing.T) {
	s := listenAt(t, Options{
		Gate:    &fakeGate{},
		Socket:  unixsocket.Socket{Path: filepath.Join(t.TempDir(), "s"), Mode: 0o600},
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "up 1\n") }),
	})
	metrics, err := send(context.Background(), dial(t, s.options.Socket.Path), opMetrics, None{})
	if err != nil {
		t.Fatal(err)
	}
	defer metrics.Close()
	if text, err := io.ReadAll(metrics); err != nil || string(text) != "up 1\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// syncBuffer is a bytes.Buffer for several goroutines.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestProbes(t *testing.T) {
	gate := &fakeGate{}
	c := dial(t, listen(t, gate).options.Socket.Path)
	if h, err := Call(context.Background(), c, OpHealth, None{}); err != nil || !h.Healthy || h.PID != 7 {
		t.Errorf("Health: %+v, %v", h, err)
	}
	for _, test := range []struct {
		method, path string
		notReady     error
		status       int
		body         string
	}{
		{"GET", "/healthz", nil, 200, "ok\n"},
		{"GET", "/healthz", errors.New("down"), 200, "ok\n"},
		{"HEAD", "/healthz", nil, 200, ""},
		{"GET", "/readyz", nil, 200, "ready\n"},
		{"GET", "/readyz", errors.New("next hop a\x1b[2J is down"), 503, "not ready: next hop a?[2J is down\n"},
		{"GET", "/readyz", nil, 200, "ready\nwarning: next hop a?[2J refused all\nwarning: b\n"},
		{"HEAD", "/readyz", errors.New("down"), 503, ""},
		{"POST", "/readyz", nil, 405, "Method Not Allowed\n"},
		{"DELETE", "/healthz", nil, 405, "Method Not Allowed\n"},
		{"GET", "/readyz/", nil, 404, ""},
		{"HEAD", "/v1/status", nil, 405, ""},
	} {
		gate.notReady, gate.warnings = test.notReady, nil
		if strings.Contains(test.body, "warning") {
			gate.warnings = []string{"next hop a\x1b[2J refused all", "b"}
		}
		r, err := http.NewRequest(test.method, "http://gate"+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response := raw(t, c, r)
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != test.status || test.body != "" && string(body) != test.body {
			t.Errorf("%s %s: %s, %q, %v; want %d, %q", test.method, test.path, response.Status, body, err, test.status, test.body)
		}
	}
}
