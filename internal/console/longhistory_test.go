package console

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"spamgate/internal/accounts"
)

// TestLongHistory visits pages and the API with SPAMGATE_HISTORY rows of a week in the history (usually
// 2,000), and says with -v how long each took. A message that is opened is found.
func TestLongHistory(t *testing.T) {
	n := 2000
	if s := os.Getenv("SPAMGATE_HISTORY"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	p := newParts(t, "")
	const batch = 1000 // fewer than the recorder keeps while it writes
	for i := range n {
		d := refusal(longID(i), time.Duration(n-i)*(7*24*time.Hour/time.Duration(n)))
		d.Sender = fmt.Sprintf("x%d@mail%d.spam.example", i%5000, i%300)
		d.Client = fmt.Sprintf("203.0.%d.%d:25", i/250%250, i%250)
		d.Recipients = []string{fmt.Sprintf("u%d@b.example", i%20000)}
		d.Reason = fmt.Sprintf("reason %d", i%60)
		if i%3 == 0 {
			d.Action = "defer"
		}
		p.recorder().Record(&d)
		if i%batch == 0 || i == n-1 {
			if err := p.recorder().Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	admin, bound := login(t, p.Console, "admin"), login(t, p.Console, "bound")
	token, err := p.Console.Accounts.AddToken("program", accounts.Admin, nil)
	if err != nil {
		t.Fatal(err)
	}
	measure := func(path, who string, r *http.Request) {
		t.Helper()
		began, spent := time.Now(), cpu(t)
		response, body := ask(p.Console, r)
		t.Logf("%-44s %-5s %5d ms, %5d ms of the processor, %7d bytes", path, who,
			time.Since(began).Milliseconds(), (cpu(t) - spent).Milliseconds(), len(body))
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s: %s\n%s", path, response.Status, body)
		}
	}
	for _, path := range []string{
		"/mail", "/mail?since=1h", "/mail?q=u77@b.example", "/mail?q=nobody@b.example", "/mail?q=mail7.spam.example", "/mail?list=blocked&action=defer",
		"/mail?recipient=u77@b.example&list=blocked", "/mail?client=203.0.3.4", "/mail/" + longID(0), "/mail/" + longID(n-1),
	} {
		measure(path, "admin", with(get(path), admin))
		measure(path, "bound", with(get(path), bound))
	}
	for _, s := range spans {
		path := "/now?range=" + s.Name
		measure(path, "admin", with(get(path), admin))
	}
	for _, path := range []string{
		"decisions", "decisions?sender=x77@mail77.spam.example", "decisions?recipient=nobody@b.example", "decisions?domain=spam.example", "decisions?list=blocked",
		"decisions?id=" + longID(n/2), "totals", "totals?since=30d", "decisions/top?by=senders", "decisions/top?by=lists",
	} {
		r := get("/api/v1/" + path)
		r.Header.Set("Authorization", "Bearer "+token)
		measure(path, "API", r)
	}
}

// cpu returns the processor time of this process.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// longID returns an ID of a message.
func longID(i int) string {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	id := make([]byte, 12)
	for k := range id {
		id[k] = digits[i%len(digits)]
		i /= len(digits)
	}
	return string(id)
}
