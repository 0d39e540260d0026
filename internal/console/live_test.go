package console

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"spamgate/internal/decisions"
)

// stream is a live view over a socket.
type stream struct {
	t      *testing.T
	lines  *bufio.Scanner
	status int
	close  context.CancelFunc
}

// openStream opens a live view.
func openStream(t *testing.T, server *httptest.Server, cookie *http.Cookie, query string) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/mail/events?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "gate.example"
	r.AddCookie(cookie)
	response, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return &stream{t, bufio.NewScanner(response.Body), response.StatusCode, cancel}
}

// until reads until a line has a text, and returns the lines. It ends with the stream.
func (s *stream) until(text string) string {
	s.t.Helper()
	var all strings.Builder
	for s.lines.Scan() {
		all.WriteString(s.lines.Text() + "\n")
		if strings.Contains(s.lines.Text(), text) {
			return all.String()
		}
	}
	s.t.Fatalf("the stream ended before %q:\n%s", text, &all)
	return ""
}

// ended waits until the server has ended the stream.
func (s *stream) ended() {
	for s.lines.Scan() {
	}
}

func TestLiveView(t *testing.T) {
	p := newParts(t, "")
	server := httptest.NewServer(p.Console)
	t.Cleanup(server.Close)
	viewer := login(t, p.Console, "viewer")
	began := time.Now().Add(-time.Minute)
	p.record(refusal("BEFQREAAAAAA", time.Second)) // after the page was made
	s := openStream(t, server, viewer, "list=blocked&from="+url.QueryEscape(began.UTC().Format(time.RFC3339Nano)))
	if s.status != 200 {
		t.Fatalf("status %d", s.status)
	}
	s.until("BEFQREAAAAAA")

	other := refusal("QTHERAAAAAAA", 0)
	other.List = "file"
	evil := refusal("EVILAAAAAAAA", 0)
	evil.Sender = hostile + "\nevent: rows\ndata: x\n\n"
	p.record(other, evil)
	got := s.until("EVILAAAAAAAA") + s.until("</tr>")
	if strings.Contains(got, "QTHER") || strings.Contains(got, "<script>a") || strings.Contains(got, "\ndata: x\n") {
		t.Errorf("the stream has\n%s", got)
	}
}

// TestLiveViewEnds checks what ends a live view.
func TestLiveViewEnds(t *testing.T) {
	p := newParts(t, "")
	server := httptest.NewServer(p.Console)
	t.Cleanup(server.Close)
	viewer := login(t, p.Console, "viewer")
	var streams []*stream
	for range streamsEach {
		s := openStream(t, server, viewer, "")
		s.until("retry:")
		streams = append(streams, s)
	}
	if s := openStream(t, server, viewer, ""); s.status != http.StatusTooManyRequests {
		t.Errorf("one too many: status %d", s.status)
	}
	streams[0].close()
	taken := func() int {
		p.streams.mu.Lock()
		defer p.streams.mu.Unlock()
		return p.streams.sum
	}
	for taken() == streamsEach { // until the server has noticed
		runtime.Gosched()
	}
	if s := openStream(t, server, viewer, ""); s.status != 200 {
		t.Errorf("after one was closed: status %d", s.status)
	}
	p.Close()
	for _, s := range streams[1:] {
		s.ended()
	}
}

// TestLiveViewOfEnded checks that a live view ends with the session.
func TestLiveViewOfEnded(t *testing.T) {
	p := newParts(t, "")
	cookie := login(t, p.Console, "bound")
	w := httptest.NewRecorder()
	x := &exchange{console: p.Console, w: w, r: with(get("/mail/events"), cookie)}
	if in, err := x.authenticate(); err != nil || !in {
		t.Fatal("the session does not count")
	}
	l := &live{exchange: x}
	l.query.RecipientDomains = x.who.Domains
	if !l.stillAllowed() {
		t.Error("a session that lasts is not allowed")
	}
	if err := p.Accounts.SetRole("bound", x.who.Role, []string{"c.example"}); err != nil {
		t.Fatal(err)
	}
	if l.stillAllowed() {
		t.Error("the live view goes on for an account that has changed")
	}
	l.take(decisions.Decision{ID: "AFTERAAAAAAA", Recipients: []string{"ann@b.example"}})
	if len(l.waiting) != 1 || l.flush() || w.Body.Len() > 0 {
		t.Errorf("a row is sent to an account that has changed: %s", w.Body)
	}
}

// TestLiveViewBounded checks that a flood of rows is cut, and said to be.
func TestLiveViewBounded(t *testing.T) {
	p := newParts(t, "")
	w := httptest.NewRecorder()
	l := &live{exchange: &exchange{console: p.Console, w: w, r: with(get("/mail/events"), login(t, p.Console, "viewer"))}}
	if in, err := l.authenticate(); err != nil || !in {
		t.Fatal("the session does not count")
	}
	for i := range liveBatch + 7 {
		l.take(numbered(i, 0))
	}
	if !l.flush() {
		t.Fatal("not sent")
	}
	got := w.Body.String()
	if n := strings.Count(got, "<tr id="); n != liveBatch || !strings.Contains(got, "event: skipped\ndata: 7\n") || strings.Contains(got, numbered(6, 0).ID) {
		t.Errorf("%d rows:\n%.300s", n, got)
	}
}

// TestRequestsBounded wants an account to have some requests under way, and not all that there can
// be.
func TestRequestsBounded(t *testing.T) {
	c := testConsole(t)
	viewer, editor := login(t, c, "viewer"), login(t, c, "editor")
	for range requestsEach {
		if _, ok := c.requests.enter("viewer"); !ok {
			t.Fatal("no place")
		}
	}
	if response, _ := ask(c, with(get("/account"), viewer)); response.StatusCode != http.StatusTooManyRequests {
		t.Errorf("one more: %s", response.Status)
	}
	for range 2 * requestsAll {
		if response, _ := ask(c, with(get("/account"), editor)); response.StatusCode != http.StatusOK {
			t.Fatalf("of another account: %s", response.Status)
		}
	}
}

func TestPlaces(t *testing.T) {
	p := places{each: 2, all: 3}
	var leave []func()
	for _, tt := range []struct {
		name string
		ok   bool
	}{{"ann", true}, {"ann", true}, {"ann", false}, {"bob", true}, {"eve", false}} {
		l, ok := p.enter(tt.name)
		if ok != tt.ok {
			t.Errorf("%s enters: %v", tt.name, ok)
		}
		if ok {
			leave = append(leave, l)
		}
	}
	for _, l := range leave {
		l()
	}
	if p.sum != 0 || len(p.taken) != 0 {
		t.Errorf("left: %+v", &p)
	}
}
