package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"spamgate/internal/atomicfile"
	"time"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/verdict"
)

// What is held is let in by accepting it, and nothing else is.
func TestAccept(t *testing.T) {
	for _, stored := range []bool{true, false} {
		path := write(t, inDir(t, "spam.txt"), manyLines(1000, 0))
		c := stateful(t, blockList("spam", path))
		if !stored {
			c.StateDir = ""
		}
		s := openStill(t, c)
		ctx := context.Background()
		if err := s.Accept(ctx, "spam"); !errors.Is(err, ErrNotHeld) {
			t.Errorf("nothing held: %v", err)
		}
		if err := s.Accept(ctx, "other"); !errors.Is(err, ErrUnknownList) {
			t.Errorf("another list: %v", err)
		}
		write(t, path, "example.com\n")
		set, err := rescan(t, s)
		if !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), "; accept spam") {
			t.Error(err)
		}
		l := set.Stats().Lists[0]
		if sum, _ := anyFile.ContentSum([]string{path}); !l.Held || l.HeldSum != sum || l.Sum == sum || l.Since.IsZero() {
			t.Errorf("%+v", l)
		}
		must(t, s.Accept(ctx, "spam"))
		if l := s.Set().Stats().Lists[0]; l.Held || l.Err != nil || l.Entries != 1 || l.Sum == "" {
			t.Errorf("accepted: %+v", l)
		}
		write(t, path, manyLines(1000, 0))
		_, err = rescan(t, s)
		must(t, err)
		write(t, path, "example.net\n")
		if _, err := rescan(t, s); !errors.Is(err, ErrShrunk) {
			t.Errorf("another content: %v", err)
		}
		write(t, path, "example.com\n")
		if _, err := rescan(t, s); err != nil {
			t.Errorf("the accepted content once more: %v", err)
		}
	}
}

// A content can be accepted by another process, before and after it is there.
func TestAcceptContent(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), manyLines(1000, 0))
	c := stateful(t, blockList("spam", path))
	s := openStill(t, c)
	accept := func(text string) {
		sum, err := anyFile.ContentSum([]string{write(t, path+".new", text)})
		must(t, err)
		must(t, AcceptContent(c, "spam", sum))
	}
	accept("example.com\n")
	write(t, path, "example.com\n")
	if set, err := rescan(t, s); err != nil || set.Stats().Entries != 1 {
		t.Errorf("accepted before: %v", err)
	}
	write(t, path, manyLines(1000, 0))
	_, err := rescan(t, s)
	must(t, err)
	write(t, path, "example.net\n")
	if _, err := rescan(t, s); !errors.Is(err, ErrShrunk) {
		t.Error(err)
	}
	// However old the file is by now, so that it would not be looked into.
	s.sources[0].live.stamps[0].Looked = time.Now().Add(2 * racyFor)
	accept("example.net\n")
	if set, err := rescan(t, s); err != nil || listed(t, set, "u@example.net") != verdict.Reject {
		t.Errorf("accepted afterwards: %v", err)
	}
	if err := AcceptContent(c, "spam", "abc"); err == nil {
		t.Error("no sum, and no error")
	}
	if err := AcceptContent(c, "other", strings.Repeat("ab", 32)); !errors.Is(err, ErrUnknownList) {
		t.Errorf("a list that is not there: %v", err)
	}
}

// Of many at once none is lost, and what is damaged lets nothing in.
func TestAcceptAtOnce(t *testing.T) {
	state := inDir(t, "state")
	var all sync.WaitGroup
	sum := func(i int) string { return strings.Repeat("ab", 31) + string("0123456789abcdef"[i]) + "0" }
	for i := range 16 {
		all.Go(func() {
			if err := acceptContent(state, "spam", acceptedContent{SHA256: sum(i)}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	sums, err := acceptedContents(atomicfile.In(state), ListName("spam"))
	if err != nil || len(sums) != 16 {
		t.Errorf("%d sums, %v", len(sums), err)
	}
	must(t, os.WriteFile(filepath.Join(ListDir(state, "spam"), acceptedName), []byte("{"), 0o600))
	if sums, err := acceptedContents(atomicfile.In(state), ListName("spam")); len(sums) != 0 || err != nil {
		t.Errorf("%v, %v", sums, err)
	}
}

// What root accepts beside a gate that is not root can be read by that.
func TestAcceptAsRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs to be root")
	}
	state := inDir(t, "state")
	must(t, os.Mkdir(state, 0o700))
	must(t, os.Chown(state, strangerID, strangerID))
	must(t, acceptContent(state, "spam", acceptedContent{SHA256: strings.Repeat("ab", 32)}))
	asStranger(t, func() {
		if sums, err := acceptedContents(atomicfile.In(state), ListName("spam")); len(sums) != 1 || err != nil {
			t.Errorf("%v, %v", sums, err)
		}
	})
}

// What the configuration forbids is not for accepting, nor what is no list.
func TestNotAcceptable(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "example.com\n")
	l := blockList("spam", path)
	l.MaxBytes, l.OnProtected = 1000, HoldProtected
	c := stateful(t, l)
	c.Protect = []string{"example.net"}
	s := openStill(t, c)
	for text, want := range map[string]error{
		"example.net\n":           ErrProtected,
		strings.Repeat("#", 1001): ErrTooBig,
		"\x00":                    listfile.ErrBinary,
		"":                        ErrEmptied,
	} {
		write(t, path, text)
		if _, err := rescan(t, s); !errors.Is(err, want) || strings.Contains(err.Error(), "; accept") {
			t.Errorf("%.20q: %v, want %v", text, err, want)
		}
		if err := s.Accept(context.Background(), "spam"); !errors.Is(err, ErrNotHeld) || !errors.Is(err, want) {
			t.Errorf("%.20q accepted: %v", text, err)
		}
		if listed(t, s.Set(), "u@example.com") != verdict.Reject {
			t.Error("the last good version does not serve")
		}
	}
}

// A reload with other guards looks at what is held once more.
func TestReloadOfGuards(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), manyLines(1000, 0))
	c := fast(blockList("spam", path))
	s := openStill(t, c)
	write(t, path, manyLines(500, 0))
	if _, err := rescan(t, s); !errors.Is(err, ErrShrunk) {
		t.Error(err)
	}
	l := c.Lists[0]
	l.MaxShrink = 0.6
	must(t, s.Reload(context.Background(), fast(l)))
	if set, err := rescan(t, s); err != nil || set.Stats().Entries != 500 {
		t.Errorf("%d entries, %v", set.Stats().Entries, err)
	}
	l.MinEntries = 501
	must(t, s.Reload(context.Background(), fast(l)))
	write(t, path, manyLines(500, 0)+"# the same\n")
	if _, err := rescan(t, s); !errors.Is(err, ErrFew) {
		t.Error(err)
	}
}

// A content that is no list never gets by, accepted or not: neither before it is
// there nor while it is held, and not by a restart.
func TestRubbishIsNotAcceptable(t *testing.T) {
	const rubbish = "<td class=x>\n"
	path := write(t, inDir(t, "spam.txt"), manyLines(1000, 0))
	c := stateful(t, blockList("spam", path))
	for name, fault := range map[string]struct {
		text string
		want error
		says string
	}{
		"an error page":  {strings.Repeat(rubbish, 30), ErrInvalidLines, path + ":1: "},
		"a long one":     {strings.Repeat(rubbish, 2000), ErrInvalidLines, "set format"},
		"some lines":     {manyLines(1000, 11), ErrInvalidLines, "correct the lines"},
		"one long line":  {strings.Repeat("x", 9000) + "\n", ErrInvalidLines, path + ":1: "},
		"nothing at all": {"", ErrEmptied, "holds a comment"},
	} {
		write(t, path, manyLines(1000, 0))
		s := openStill(t, c)
		write(t, path, fault.text)
		sum, err := anyFile.ContentSum([]string{path})
		must(t, err)
		must(t, s.AcceptContent("spam", sum))
		for _, when := range []string{"accepted before", "started again"} {
			set, err := rescan(t, s)
			if !errors.Is(err, fault.want) || !strings.Contains(err.Error(), fault.says) || strings.Contains(err.Error(), "; accept") {
				t.Errorf("%s, %s: %v", name, when, err)
			}
			if l := set.Stats().Lists[0]; !l.Held || l.HeldSum != "" || l.Entries != 1000 {
				t.Errorf("%s, %s: %+v", name, when, l)
			}
			if err := s.Accept(context.Background(), "spam"); !errors.Is(err, ErrNotHeld) {
				t.Errorf("%s, %s: %v", name, when, err)
			}
			must(t, s.Close())
			s = openStill(t, c)
		}
		must(t, s.Close())
	}
}

// What was accepted is judged anew once the list is read in another way.
func TestAcceptedAsItWasRead(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), manyLines(3000, 0))
	l := blockList("spam", path)
	l.MinEntries = 2000
	c := stateful(t, l)
	s := openStill(t, c)
	write(t, path, manyLines(1500, 0))
	if _, err := rescan(t, s); !errors.Is(err, ErrFew) {
		t.Error(err)
	}
	must(t, s.Accept(context.Background(), "spam"))
	for name, change := range map[string]struct {
		make func(*List)
		want error
	}{
		"another format": {func(l *List) { l.Format = listfile.Hosts }, ErrInvalidLines},
		"exact":          {func(l *List) { l.Exact = true }, ErrFew},
	} {
		changed := l
		change.make(&changed)
		other := c
		other.Lists = []List{changed}
		if _, _, err := Build(context.Background(), other); !errors.Is(err, change.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.Reload(context.Background(), other); !errors.Is(err, change.want) {
			t.Errorf("%s: %v", name, err)
		}
		if n := s.Set().Stats().Entries; n != 1500 {
			t.Errorf("%s: %d entries serve", name, n)
		}
	}
	must(t, s.Close())
	must(t, os.Remove(filepath.Join(ListDir(c.StateDir, "spam"), segmentName)))
	if set := build(t, c); set.Stats().Entries != 1500 {
		t.Errorf("read in the same way: %+v", set.Stats())
	}
}

// What serves is read again whatever it looks like by now: where entries have
// expired, invalid lines are more of what is left.
func TestReadAgainWithInvalidLines(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), manyLines(999, 20))
	s := openStill(t, fast(blockList("spam", path)))
	s.running.Wait() // for what looks at the version once it is live
	good := s.sources[0].live.good
	good.index.MarkDamaged()
	good.Entries = 1000 // as it had when it was read first
	if _, err := rescan(t, s); err != nil || versionAt(s, 0) == good {
		t.Error("not read again", err)
	}
}
