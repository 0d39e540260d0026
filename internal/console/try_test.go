package console

import (
	"bytes"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// upload returns the request of the form with a message as a file.
func upload(t *testing.T, message []byte, fields ...string) *http.Request {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for i := 0; i < len(fields); i += 2 {
		if err := w.WriteField(fields[i], fields[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if message != nil {
		part, err := w.CreateFormFile("file", "message.eml")
		if err == nil {
			_, err = part.Write(message)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "http://gate.example/try", &body)
	r.Header.Set("Content-Type", w.FormDataContentType())
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return r
}

const listedMessage = "Return-Path: <ok@good.example>\r\nFrom: <user@listed.example>\r\nSubject: x\r\n\r\nhello\r\n"

func TestTry(t *testing.T) {
	p := newTestLists(t, "", nil)
	_, body := p.as("viewer", get("/try"), 200)
	wantAll(t, body, "Try the address", "Try the message")
	for _, tt := range []struct {
		who, query string
		status     int
		want       string
	}{
		{"viewer", "address=x@sub.spam.example", 200, `<span class="badge reject">refused</span>`},
		{"viewer", "address=x@sub.spam.example", 200, "Every step"},
		{"viewer", "address=x@good.example&recipient=ann@b.example&client=192.0.2.1&helo=mx.example.net", 200, `<span class="badge accept">accepted</span>`},
		{"viewer", "address=x@good.example&client=nonsense", 400, "is not an IP address"},
		{"viewer", "address=a+b", 400, `role="alert"`},
		{"viewer", "address=x@good.example&listener=nothing", 400, "nothing"},
		{"viewer", "address=<script>alert(1)</script>@a.example", 400, "&lt;script&gt;"},
		{"bound", "address=x@good.example", 400, "Name a recipient at b.example"},
		{"bound", "address=x@good.example&recipient=ann@c.example", 403, "b.example"},
		{"bound", "address=x@good.example&recipient=ann@b.example", 200, "accepted"},
		{"helpdesk", "address=x@sub.spam.example", 200, "&amp;recipient=&amp;sender=x%40sub.spam.example&amp;type=allow"},
	} {
		_, body := p.as(tt.who, get("/try?"+tt.query), tt.status)
		wantAll(t, body, tt.want)
	}
	_, body = p.as("viewer", get("/try?address=x@sub.spam.example"), 200)
	wantNone(t, body, "/entry/new") // it may not
}

func TestTryMessage(t *testing.T) {
	p := newTestLists(t, "", nil)
	_, body := p.as("viewer", upload(t, []byte(listedMessage)), 200)
	wantAll(t, body, "refused", "user@listed.example", "ok@good.example")
	_, body = p.as("viewer", upload(t, nil, "message", listedMessage, "from", "x@spam.example", "recipient", "ann@b.example"), 200)
	wantAll(t, body, "x@spam.example", "hello") // the message stays in the form
	_, body = p.as("viewer", upload(t, []byte("From: <x@good.example>\r\n\r\n"+strings.Repeat("text\r\n", 1<<20))), 200)
	wantAll(t, body, "accepted")
	p.as("viewer", upload(t, nil), 400)
	p.as("viewer", upload(t, []byte(" \r\n")), 400)
	p.as("bound", upload(t, []byte(listedMessage)), 400)
	p.as("bound", upload(t, []byte(listedMessage), "recipient", "ann@b.example"), 200)
	p.as("viewer", upload(t, bytes.Repeat([]byte("x"), maxTried+1)), 413)
	p.as("viewer", upload(t, bytes.Repeat([]byte("x"), maxTried+maxForm+1)), 413)
	p.as("editor", post("/entry/new", "why", strings.Repeat("x", maxForm)), 400) // other forms are smaller
	_, body = p.as("viewer", upload(t, []byte("From: \"<script>alert(1)</script>\u202e\" <\"<img src=x onerror=alert(1)>\"@a.example>\r\n\r\n")), 200)
	wantNone(t, body, "<script>alert", "<img src=x", "\u202e")

	for range tryPlaces {
		p.tries <- struct{}{}
	}
	p.as("viewer", upload(t, []byte(listedMessage)), 503)
}

// TestTryBadForms sends forms that no page makes: they are the client's fault, and nothing in the log.
func TestTryBadForms(t *testing.T) {
	p := newTestLists(t, "", nil)
	var log bytes.Buffer
	p.Logger = slog.New(slog.NewTextHandler(&log, nil))
	var fields []string
	for range 50_000 {
		fields = append(fields, "a", "")
	}
	const boundary = "multipart/form-data; boundary=x"
	for name, r := range map[string]*http.Request{
		"50,000 parts": upload(t, []byte(listedMessage), fields...),
		"cut off":      withType(boundary, "--x\r\nContent-Disposition: form-data; name=\"message\"\r\n\r\nFrom: a"),
		"no part":      withType(boundary, "nothing"),
		"no boundary":  withType("multipart/form-data", "--x--\r\n"),
	} {
		if _, body := p.as("viewer", r, 400); !strings.Contains(body, "The form cannot be read: ") {
			t.Errorf("%s: %s", name, mainOf(body))
		}
	}
	if log.Len() > 0 {
		t.Errorf("the log has %.1000s", log.String())
	}
}

// withType returns a request with a message to try, whose body has a type.
func withType(contentType, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://gate.example/try", strings.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return r
}

func TestSettings(t *testing.T) {
	p := newTestLists(t, "[[list]]\nname='far'\nurl='https://lists.example/list?token=secretsecret'\noptional=true\n[[list]]\nname='dns'\ndns_zone='secretkey1234567890abcdef.dbl.example.org'\n[log]\nlevel='warn'\n", nil)
	_, body := p.as("viewer", get("/settings"), 200)
	wantAll(t, body, "[listen]", `hostname = &#34;mx.example&#34;`, "line 2", "level = &#34;warn&#34;", "config.toml", "restart", "The gate&#39;s own name", "https://lists.example/list?...")
	wantNone(t, body, "secretsecret", "secretkey", "has changed since")
	p.write("config.toml", listsConfig+"# another\n")
	_, body = p.as("viewer", get("/settings"), 200)
	wantAll(t, body, "has changed since")
	p.as("bound", get("/settings"), 403)
}
