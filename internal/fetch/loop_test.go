package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"spamgate/internal/text"
)

// clocked notes when requests come.
type clocked struct {
	mu    sync.Mutex
	began time.Time
	times []time.Duration
}

func (c *clocked) around(h http.HandlerFunc) http.HandlerFunc {
	c.began = time.Now()
	return func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.times = append(c.times, time.Since(c.began))
		c.mu.Unlock()
		h(w, r)
	}
}

// taken are the times of the requests since it was last called.
func (c *clocked) taken() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	times := c.times
	c.times = nil
	return times
}

// wantGaps wants each of some delays, each longer by a tenth at most.
func wantGaps(t *testing.T, times []time.Duration, want ...time.Duration) {
	t.Helper()
	if len(times) != len(want)+1 {
		t.Fatalf("requests at %v, want %d", times, len(want)+1)
	}
	for i, w := range want {
		if gap := times[i+1] - times[i]; gap < w || gap > w+w/10 {
			t.Errorf("delay %d is %v, want %v and a tenth at most", i+1, gap, w)
		}
	}
}

// TestRefresh wants a list to be fetched at once, and then each hour.
func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clocked
		x := newBubbleFixture(t, c.around(send(listText)))
		x.fetcher.Update([]Source{x.source})
		time.Sleep(time.Second)
		x.wantCopy(t, listText)
		time.Sleep(3*time.Hour + 20*time.Minute)
		times := c.taken()
		if times[0] != 0 {
			t.Errorf("first request after %v", times[0])
		}
		wantGaps(t, times, time.Hour, time.Hour, time.Hour)
		status, ok := x.fetcher.Status("ads")
		if now := time.Now(); !ok || status.Err != nil || status.Failures != 0 || status.Bytes != int64(len(listText)) ||
			now.Sub(status.LastGood) > time.Hour || !status.NextTry.After(now) {
			t.Errorf("status %+v, %v", status, ok)
		}
		if _, ok := x.fetcher.Status("other"); ok {
			t.Error("there is a status of a list that there is not")
		}
		if n := x.log.count("list fetched"); n != 4 {
			t.Errorf("%d lines, want 4: %s", n, &x.log)
		}
	})
}

// TestBackOff wants a failure to be tried again soon, then less and less often, and
// to be logged once, as the recovery.
func TestBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clocked
		day := time.Now().UTC().Format(time.DateOnly)
		x := newBubbleFixture(t, nil)
		x.handler.set(c.around(answer(500)))
		x.fetcher.Update([]Source{x.source})
		time.Sleep(4 * time.Hour)
		m := time.Minute
		wantGaps(t, c.taken(), 1*m, 2*m, 4*m, 8*m, 16*m, 32*m, 60*m, 60*m)
		status, _ := x.fetcher.Status("ads")
		if status.Failures != 9 || status.Err == nil || !status.LastGood.IsZero() {
			t.Errorf("status %+v", status)
		}
		if n := x.log.count("list not fetched, and there is no copy of it"); n != 1 {
			t.Errorf("%d lines: %s", n, &x.log)
		}
		x.handler.set(c.around(answer(404)))
		time.Sleep(2 * time.Hour)
		if n := x.log.count("list not fetched"); n != 2 {
			t.Errorf("%d lines: %s", n, &x.log)
		}

		x.handler.set(send(listText))
		time.Sleep(2 * time.Hour)
		if status, _ := x.fetcher.Status("ads"); status.Failures != 0 || status.Err != nil {
			t.Errorf("status %+v", status)
		}
		x.handler.set(answer(500))
		time.Sleep(2 * time.Hour)
		if n := x.log.count("list not fetched"); n != 3 || x.log.count("its copy stays as it is") != 1 || x.log.count("copy_from="+day+"T0") != 1 {
			t.Errorf("%d lines: %s", n, &x.log)
		}
	})
}

// TestRecoveryIsLogged wants a line, too, when what comes back is no new version.
func TestRecoveryIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newBubbleFixture(t, send(listText, "ETag", `"1"`))
		x.fetcher.Update([]Source{x.source})
		time.Sleep(time.Minute)
		for _, h := range []http.HandlerFunc{answer(304), answer(500), answer(304), answer(304)} {
			x.handler.set(h)
			time.Sleep(90 * time.Minute)
		}
		if x.log.count("\n") != 3 || x.log.count("list up to date again") != 1 {
			t.Errorf("log: %s", &x.log)
		}
		if status, _ := x.fetcher.Status("ads"); !status.NotModified || status.ETag != `"1"` || time.Since(status.LastGood) > 66*time.Minute {
			t.Errorf("status %+v", status)
		}
	})
}

// TestStartWithCopy wants a young copy to be left alone, and no other.
func TestStartWithCopy(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(t *testing.T, x *fixture)
		want   time.Duration // before the first request
	}{
		{"young", func(*testing.T, *fixture) {}, 40 * time.Minute},
		{"older than the interval", func(*testing.T, *fixture) { time.Sleep(time.Hour) }, 0},
		{"removed", func(t *testing.T, x *fixture) { remove(t, x.source.Copy) }, 0},
		{"changed", func(t *testing.T, x *fixture) { write(t, x.source.Copy, "") }, 0},
		{"from another URL", func(_ *testing.T, x *fixture) { x.source.URL += "?" }, 0},
		{"from the future", func(t *testing.T, x *fixture) {
			st, err := loadState(x.source)
			st.Checked = st.Checked.Add(time.Hour)
			if err = errors.Join(err, st.save(x.source)); err != nil {
				t.Fatal(err)
			}
		}, 0},
		{"without state, young", func(t *testing.T, x *fixture) {
			remove(t, x.source.Copy+stateSuffix)
			setTime(t, x.source.Copy, time.Now().Add(-10*time.Minute))
		}, 50 * time.Minute},
		{"without state, old", func(t *testing.T, x *fixture) {
			remove(t, x.source.Copy+stateSuffix)
			setTime(t, x.source.Copy, time.Now().Add(-100*time.Minute))
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newBubbleFixture(t, send(listText))
				x.fetch(t)
				time.Sleep(20 * time.Minute)
				c.change(t, x)
				var clock clocked
				x.handler.set(clock.around(send(listText)))
				x.fetcher.Update([]Source{x.source})
				time.Sleep(65 * time.Minute)
				times := clock.taken()
				if len(times) == 0 || times[0] < c.want || times[0] > c.want+6*time.Minute || c.want == 0 && times[0] != 0 {
					t.Errorf("requests at %v, want the first at %v", times, c.want)
				}
			})
		})
	}
}

func setTime(t *testing.T, path string, instant time.Time) {
	t.Helper()
	if err := os.Chtimes(path, instant, instant); err != nil {
		t.Fatal(err)
	}
}

// TestUpdate wants what is unchanged to keep its schedule, what is new or changed
// to be fetched, and what is gone to be left alone.
func TestUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		asked := map[string]int{}
		x := newBubbleFixture(t, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			asked[r.URL.Path]++
			mu.Unlock()
			w.WriteHeader(http.StatusInternalServerError)
		})
		source := func(name string) Source {
			s := x.source
			s.Name, s.URL, s.Copy = name, x.server.URL+"/"+name, x.source.Copy+"-"+name
			return s
		}
		changed := source("b")
		changed.URL += "2"
		for _, step := range []struct {
			sources []Source
			want    map[string]int
		}{
			{[]Source{source("a"), source("b"), source("c")}, map[string]int{"/a": 1, "/b": 1, "/c": 1}},
			{[]Source{source("a"), changed, source("d")}, map[string]int{"/a": 1, "/b": 1, "/c": 1, "/b2": 1, "/d": 1}},
			{nil, map[string]int{"/a": 1, "/b": 1, "/c": 1, "/b2": 1, "/d": 1}},
		} {
			x.fetcher.Update(step.sources)
			time.Sleep(20 * time.Second)
			mu.Lock()
			if fmt.Sprint(asked) != fmt.Sprint(step.want) {
				t.Errorf("asked: %v, want %v", asked, step.want)
			}
			mu.Unlock()
			for _, s := range step.sources {
				if status, ok := x.fetcher.Status(s.Name); !ok || status.Failures != 1 || !strings.Contains(status.Err.Error(), text.ShownURL(s.URL)) {
					t.Errorf("%s: %+v", s.Name, status)
				}
			}
		}
		time.Sleep(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		if len(asked) != 5 || slices.Max([]int{asked["/a"], asked["/b"], asked["/c"]}) != 1 {
			t.Errorf("asked: %v, want nothing more", asked)
		}
	})
}

// TestClose wants no goroutine to be left, which a bubble does not end with, and
// a fetch that is going on to end without a word.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newBubbleFixture(t, stallAfter(listText))
		x.fetcher.Update([]Source{x.source})
		time.Sleep(10 * time.Second)
		began := time.Now()
		x.fetcher.Close()
		if time.Since(began) != 0 {
			t.Errorf("closed after %v", time.Since(began))
		}
		x.fetcher.Close()
		if files := x.files(t); len(files) != 0 || x.log.String() != "" {
			t.Errorf("files %v, log %s", files, &x.log)
		}
	})
}

// TestRetryAfter goes through what servers say of when to come back.
func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		field string
		want  time.Duration // the next try, without jitter, where an hour is the interval
	}{
		{"", time.Minute},
		{"0", time.Minute},
		{"30", time.Minute},
		{"600", 10 * time.Minute},
		{"7200", 2 * time.Hour},
		{"99999999", 24 * time.Hour},
		{"18446744073709551615", 24 * time.Hour},
		{"99999999999999999999999", time.Minute},
		{"-5", time.Minute},
		{"soon", time.Minute},
		{"Sat, 01 Aug 2026 10:30:00 GMT", 30 * time.Minute},
		{"Sat, 01 Aug 2026 09:30:00 GMT", time.Minute},
		{"Fri, 01 Aug 2036 09:30:00 GMT", 24 * time.Hour},
	} {
		err := fmt.Errorf("with words: %w", &StatusError{Code: 503, RetryAfter: retryAfter(c.field, now)})
		if got := nextDelay(time.Hour, 1, err); got < c.want || got > c.want+c.want/10 {
			t.Errorf("%q: %v, want %v", c.field, got, c.want)
		}
	}
}

// TestFailureText wants failures that are the same to be so in words.
func TestFailureText(t *testing.T) {
	a := errors.New("read tcp 192.0.2.1:53422->192.0.2.2:443: connection reset by peer")
	b := errors.New("read tcp 192.0.2.1:53424->192.0.2.2:443: connection reset by peer")
	c := errors.New("read tcp [2001:db8::1]:53424->[2001:db8::2]:443: connection reset by peer")
	if failureText(a) != failureText(b) || failureText(a) == failureText(c) || strings.Contains(failureText(c), "53424") {
		t.Errorf("%s\n%s\n%s", failureText(a), failureText(b), failureText(c))
	}
}
