package fetch

import (
	"errors"
	"net/http"
	"testing"
)

// TestReplaceCopy puts another content in the copy's place: fetches leave it there
// until the server has something new, whether or not it answers conditions.
func TestReplaceCopy(t *testing.T) {
	const mine, newer = "example.edu # mine\n", "example.com # newer\n"
	for _, conditional := range []bool{true, false} {
		tag, text := `"1"`, listText
		x := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
			if conditional && r.Header.Get("If-None-Match") == tag {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			send(text, "ETag", tag)(w, r)
		})
		x.fetch(t)
		put := func(text string) {
			t.Helper()
			if err := ReplaceCopy(x.source, func() error { write(t, x.source.Copy, text); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		for _, mine := range []string{mine, mine + mine} {
			put(mine)
			for range 2 {
				if status := x.fetch(t); !status.NotModified {
					t.Errorf("conditional %t: status %+v", conditional, status)
				}
				x.wantCopy(t, mine)
			}
		}
		put(listText) // as if nothing had been
		if status := x.fetch(t); status.NotModified != conditional {
			t.Errorf("conditional %t: status %+v", conditional, status)
		}
		put(mine)
		tag, text = `"2"`, newer
		if status := x.fetch(t); status.NotModified {
			t.Errorf("conditional %t: status %+v", conditional, status)
		}
		x.wantCopy(t, newer)
		tag, text = `"3"`, listText // what was replaced once is new now
		x.fetch(t)
		x.wantCopy(t, listText)
	}
}

func TestReplaceCopyFails(t *testing.T) {
	x := newFixture(t, send(listText))
	if err := ReplaceCopy(x.source, func() error { return nil }); err == nil {
		t.Error("without a copy there is no error")
	}
	x.fetch(t)
	before := x.files(t)
	failed := errors.New("no space left")
	if err := ReplaceCopy(x.source, func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("error %v, want %v", err, failed)
	}
	for name, content := range x.files(t) {
		if content != before[name] {
			t.Errorf("%s has changed", name)
		}
	}
}
