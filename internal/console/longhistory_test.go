package console

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

// TestLongHistory visits the pages with SPAMGATE_HISTORY rows of a week in the history (usually
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
	for _, path := range []string{
		"/mail", "/mail?since=1h", "/mail?q=u77@b.example", "/mail?q=nobody@b.example", "/mail?q=mail7.spam.example", "/mail?list=blocked&action=defer",
		"/mail?recipient=u77@b.example&list=blocked", "/mail?client=203.0.3.4", "/mail/" + longID(0), "/mail/" + longID(n-1),
	} {
		began := time.Now()
		visit(t, p.Console, admin, path, 200)
		middle := time.Now()
		visit(t, p.Console, bound, path, 200)
		t.Logf("%-50s %5d ms, bound to a domain %5d ms", path, middle.Sub(began).Milliseconds(), time.Since(middle).Milliseconds())
	}
	for _, s := range spans {
		began := time.Now()
		visit(t, p.Console, admin, "/now?range="+s.Name, 200)
		t.Logf("%-50s %5d ms", "/now?range="+s.Name, time.Since(began).Milliseconds())
	}
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
