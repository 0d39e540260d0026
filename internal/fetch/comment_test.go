package fetch

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// TestTrustedComment has signatures that are good, but of another list or without what
// binds them to one.
func TestTrustedComment(t *testing.T) {
	public, private := newKey(t)
	current := time.Now().Unix()
	for _, c := range []struct {
		comment, signedFile string
		want                string // empty: good
	}{
		{comment("list.txt", current), "", ""},
		{comment("list.txt", 0), "", ""},
		{comment("list.txt", current+3600), "", ""}, // the publisher's clock is fast
		{"timestamp:1\tfile:list.txt", "", ""},      // as minisign -l writes
		{"file:list.txt\ttimestamp:1\thashed\tmore", "", ""},
		{comment("allowed.txt", current), "", `it is for the file "allowed.txt", not for "list.txt"`},
		{comment("LIST.TXT", current), "", `not for "list.txt"`},
		{comment("./list.txt", current), "", `not for "list.txt"`},
		{comment("", current), "", `it is for the file ""`},
		{comment("blocked 1.txt", current), "blocked 1.txt", ""},
		{comment("list.txt", current), "blocked.txt", `it is for the file "list.txt", not for "blocked.txt"`},
		{comment("list.txt", current+90000), "", "it was made in the future"},
		{comment("list.txt", 1<<62), "", "it was made in the future"},
		{"timestamp:-1\tfile:list.txt", "", `the timestamp "-1"`},
		{"timestamp:9223372036854775808\tfile:list.txt", "", "is not a number of seconds"},
		{"timestamp: 1\tfile:list.txt", "", "is not a number of seconds"},
		{"timestamp:1", "", "ask the publisher to sign without a comment of their own (-t)"},
		{"file:list.txt", "", `has to contain "timestamp:" and "file:" once`},
		{"timestamp:1 file:list.txt", "", "as minisign writes them"},
		{"timestamp:1\tfile:list.txt\tfile:allowed.txt", "", "once"},
		{"timestamp:1\ttimestamp:2\tfile:list.txt", "", "once"},
		{comment("list.txt", current) + "\tsequence:1\texpires:9000000000\tsha256:" + strings.Repeat("0", 64), "", ""},
		{comment("list.txt", current) + "\tsequence:x", "", `has "sequence:x", which is not a single positive number`},
		{comment("list.txt", current) + "\tsequence:0", "", "not a single positive number"},
		{comment("list.txt", current) + "\tsequence:1\tsequence:2", "", "not a single positive number"},
		{comment("list.txt", current) + "\tsequence:9223372036854775808", "", "not a single positive number"},
		{comment("list.txt", current) + "\texpires:-1", "", "not a single positive number"},
		{comment("list.txt", current) + "\tsha256:00", "", "not a single SHA-256"},
		{comment("list.txt", current) + "\tsha256:" + strings.Repeat("Z", 64), "", "not a single SHA-256"},
		{"the list of today", "", `its trusted comment "the list of today" has to contain`},
		{"", "", `its trusted comment "" has`},
	} {
		t.Run(c.comment, func(t *testing.T) {
			x := newFixture(t, signed(listText, signAs(private, listText, c.comment)))
			x.source.PublicKey, x.source.SignedFile = public.String(), c.signedFile
			if c.want == "" {
				x.fetch(t)
				return
			}
			x.wantFault(t, c.want, ErrSignature)
			x.source.Force = true
			x.wantFault(t, c.want, ErrSignature)
		})
	}
}

// TestSignedFile has URLs without a file name.
func TestSignedFile(t *testing.T) {
	public, private := newKey(t)
	x := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			w.Write(signAs(private, listText, comment("blocked.txt", 1)))
			return
		}
		send(listText)(w, r)
	})
	x.source.PublicKey = public.String()
	x.source.SignatureURL = x.server.URL + "/signature"
	for _, path := range []string{"", "/", "/?list=blocked.txt"} {
		x.source.URL = x.server.URL + path
		x.wantFault(t, "set signed_file", ErrSignature)
	}
	x.source.SignedFile = "blocked.txt"
	x.fetch(t)
}

// TestAnotherListsSignature has a server, or who controls it, that serves one of two lists
// with its signature at the other's URL.
func TestAnotherListsSignature(t *testing.T) {
	public, private := newKey(t)
	x := newFixture(t, nil)
	x.handler.set(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, signatureSuffix) {
			w.Write(signAs(private, "friend.example\n", comment("allowed.txt", 100)))
			return
		}
		send("friend.example\n")(w, r)
	})
	x.source.PublicKey = public.String()
	x.source.URL = x.server.URL + "/blocked.txt"
	x.wantFault(t, `it is for the file "allowed.txt", not for "blocked.txt"`, ErrSignature)
	x.source.URL = x.server.URL + "/allowed.txt"
	x.fetch(t)
}

// TestOlderSignature has a server that goes back to an older signed version.
func TestOlderSignature(t *testing.T) {
	const older, newer = "older.example\n", "newer.example\n"
	public, private := newKey(t)
	serve := func(text string, offset int64) http.HandlerFunc {
		return signed(text, signAs(private, text, comment("list.txt", offset)))
	}
	const refused = "before the last one that was accepted (1970-01-01T00:03:20Z): to go back to it, run spamgate lists fetch ads --force"
	for name, change := range map[string]func(t *testing.T, x *fixture){
		"as it was":        func(*testing.T, *fixture) {},
		"copy removed":     func(t *testing.T, x *fixture) { remove(t, x.source.Copy) },
		"copy written to":  func(t *testing.T, x *fixture) { write(t, x.source.Copy, "mine.example\n") },
		"rolled back":      func(t *testing.T, x *fixture) { rollBack(t, x, older) },
		"the same, resent": func(t *testing.T, x *fixture) { x.fetch(t) },
		"in between, another server": func(t *testing.T, x *fixture) {
			x.handler.set(answer(500))
			x.wantFault(t, "500", nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newFixture(t, serve(newer, 200))
			x.source.PublicKey = public.String()
			x.fetch(t)
			change(t, x)
			x.handler.set(serve(older, 199))
			x.wantFault(t, refused, ErrOlder)
			x.handler.set(serve(older+newer, 200)) // signed twice in a second
			x.fetch(t)
			x.handler.set(serve(older, 199))
			x.wantFault(t, refused, ErrOlder)

			x.source.Force = true
			x.fetch(t)
			x.wantCopy(t, older)
			x.source.Force = false
			x.fetch(t) // and stays so
			x.handler.set(serve(older+older, 198))
			x.wantFault(t, "before the last one that was accepted (1970-01-01T00:03:19Z)", ErrOlder)
		})
	}
}

// rollBack puts another content in the copy's place.
func rollBack(t *testing.T, x *fixture, text string) {
	t.Helper()
	if err := ReplaceCopy(x.source, func() error { return os.WriteFile(x.source.Copy, []byte(text), 0o600) }); err != nil {
		t.Fatal(err)
	}
	if status := x.fetch(t); !status.NotModified || !status.Replaced {
		t.Errorf("status %+v", status)
	}
}

// TestOtherKey has a publisher with a new key, whose clock may be another.
func TestOtherKey(t *testing.T) {
	public, private := newKey(t)
	next, nextPrivate := newKey(t)
	x := newFixture(t, signed(listText, signAs(private, listText, comment("list.txt", 200))))
	x.source.PublicKey = public.String()
	x.fetch(t)
	x.handler.set(signed(listText, signAs(nextPrivate, listText, comment("list.txt", 100))))
	x.source.PublicKey = next.String()
	x.fetch(t)
}

// TestForceReplaced fetches what a rollback has replaced.
func TestForceReplaced(t *testing.T) {
	x := newFixture(t, send(listText, "ETag", `"1"`))
	x.fetch(t)
	rollBack(t, x, otherText)
	x.source.Force = true
	if status := x.fetch(t); status.NotModified || status.Replaced {
		t.Errorf("status %+v", status)
	}
	x.wantCopy(t, listText)
	for _, r := range x.handler.requests()[2:] {
		if r.Get("If-None-Match") != "" {
			t.Errorf("request: %v", r)
		}
	}
}

// FuzzComment checks that only the fields of minisign's comment decide.
func FuzzComment(f *testing.F) {
	f.Add("timestamp:1795300739\tfile:list.txt\thashed")
	f.Add("timestamp:1\tfile:list.txt\r")
	f.Add("file:list.txt\tfile:list.txt\ttimestamp:1")
	s := Source{URL: "https://lists.example/list.txt"}
	f.Fuzz(func(t *testing.T, comment string) {
		c, err := s.checkComment(comment, state{}, time.Unix(1<<31, 0))
		if err == nil && (c.Timestamp < 0 || !strings.Contains(comment, "file:list.txt") || strings.Count(comment, "timestamp:") < 1) {
			t.Errorf("%q: %+v", comment, c)
		}
	})
}
