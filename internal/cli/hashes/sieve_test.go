package hashes

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"spamgate/blocklist/bloom"
	"spamgate/hashfamily"
)

// runSieve runs "hashes sieve" and returns both outputs.
func runSieve(in io.Reader, args ...string) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	cmd := NewCommand()
	cmd.SilenceErrors = true
	cmd.SetIn(in)
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs(append([]string{"sieve"}, args...))
	err = cmd.ExecuteContext(context.Background())
	return out.String(), errs.String(), err
}

// TestHashesSieve prints each key once, as it came.
func TestHashesSieve(t *testing.T) {
	const in = "b\na\nb\n\n a\na\n\n#\n\xff\n\xff\nend"
	for _, family := range []string{"classic", "classic9", "weighted", "digest", "double", "double:murmur3", "seeded:7"} {
		got, warned, err := runSieve(strings.NewReader(in), "--family", family)
		if err != nil || got != "b\na\n\n a\n#\n\xff\nend\n" || warned != "" {
			t.Errorf("%s: %q, %q, %v", family, got, warned, err)
		}
	}
	got, _, err := runSieve(strings.NewReader("<a>\n\xff\n<a>\n"), "--json")
	if want := "{\"key\":\"<a>\",\"key_hex\":\"3c613e\"}\n{\"key\":null,\"key_hex\":\"ff\"}\n"; err != nil || got != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

var warnedOf = regexp.MustCompile(`sieve: ([0-9,]+) different keys, (as many as|more than) the sieve is made for: it now drops about 1 in ([0-9,]+) new keys \(([0-9.e+-]+)\), and more with each`)

// TestHashesSieveWarns checks that the warnings come at the capacity and with each tenfold
// rate, and that the last rate is that of the keys that were dropped around it.
func TestHashesSieveWarns(t *testing.T) {
	const entries, keys = 2000, 6000
	var in bytes.Buffer
	for i := range keys {
		fmt.Fprintf(&in, "user%d@example.com\n", i*i)
	}
	got, warned, err := runSieve(bytes.NewReader(in.Bytes()), "--entries", strconv.Itoa(entries), "--bits", "57600", "--family", "seeded")
	if err != nil {
		t.Fatal(err)
	}
	all := warnedOf.FindAllStringSubmatch(warned, -1)
	if len(all) < 3 || len(all) != strings.Count(warned, "\n") || all[0][1] < "1,980" || all[0][1] > "2,000" || all[0][2] != "as many as" || all[1][2] != "more than" {
		t.Fatalf("warned: %s", warned)
	}
	before := 0.0
	for _, w := range all {
		rate, err := strconv.ParseFloat(w[4], 64)
		if err != nil || rate < 9.9*before {
			t.Errorf("rates: %s", warned)
		}
		before = rate
	}
	dropped := keys - strings.Count(got, "\n")
	if dropped < 20 || dropped > keys/2 {
		t.Errorf("%d of %d keys dropped", dropped, keys)
	}
	if _, warned, _ := runSieve(bytes.NewReader(in.Bytes()), "--entries", "6001"); warned != "" {
		t.Errorf("below its capacity: %s", warned)
	}
	const tooSmall = "spamgate: hashes sieve: at 2,000 different keys it will drop about 1 in 3 new keys (0.39); use more --bits\n"
	if _, warned, _ := runSieve(strings.NewReader("a\n"), "--entries", "2000", "--bits", "4000", "--family", "digest"); warned != tooSmall {
		t.Errorf("too small: %s; want %s", warned, tooSmall)
	}
}

// TestHashesSieveSize compares the sizes that follow from the flags.
func TestHashesSieveSize(t *testing.T) {
	for _, c := range []struct {
		s       sieving
		m, n, k uint64 // of the sieve; 0 means any
	}{
		{sieving{family: "double"}, leastBits, 1_000_000, 20},
		{sieving{family: "double", entries: 1}, leastBits, 1, 20},
		{sieving{family: "classic", bits: 1 << 28}, 1 << 28, 0, 11},
		{sieving{family: "weighted", bits: 1000}, 1024, 0, 7},
		{sieving{family: "seeded", bits: 1 << 20, entries: 100_000}, 1 << 20, 100_000, 7},
		{sieving{family: "double", entries: 10_000_000}, 0, 10_000_000, 20},
	} {
		spec, err := hashfamily.ParseSpec(c.s.family)
		if err != nil {
			t.Fatal(err)
		}
		family, n, err := c.s.size(spec)
		if err != nil {
			t.Errorf("%+v: %v", c.s, err)
			continue
		}
		if m, k := family.M(), uint64(family.K()); c.m != 0 && m != c.m || c.n != 0 && uint64(n) != c.n || k != c.k {
			t.Errorf("%+v: m %d, n %d, k %d", c.s, m, n, k)
		}
		if c.n == 0 {
			filter, err := bloom.New(family)
			if err != nil {
				t.Fatal(err)
			}
			if _, rate := filter.Expect(float64(n)); rate > 1.2*sieveFPR {
				t.Errorf("%+v: %d keys, rate %g", c.s, n, rate)
			}
		}
	}
}

func TestHashesSieveErrors(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"a"}, `"a" is too much: the keys come from standard input`},
		{[]string{"--family", "nope"}, `--family: hash family "nope" is unknown`},
		{[]string{"--bits", "1"}, "--bits 1: too few"},
		{[]string{"--bits", "4294967297"}, "at most 4294967296 (512 MiB)"},
		{[]string{"--entries", "99999999999"}, "--entries 99999999999: "},
		{[]string{"--entries", "-1"}, "invalid argument"},
	} {
		if got, _, err := runSieve(strings.NewReader("a\n"), c.args...); err == nil || !strings.Contains(err.Error(), c.want) || got != "" {
			t.Errorf("%q: %q, %v; want %q", c.args, got, err, c.want)
		}
	}
	if got, _, err := runSieve(io.MultiReader(strings.NewReader("a\n"), brokenIO{})); err == nil || !strings.Contains(err.Error(), "line 2: broken") || got != "a\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// gone is a pipe that nobody reads.
type gone struct{}

func (gone) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// TestHashesSieveUnread checks that it ends without an error, and does not read on.
func TestHashesSieveUnread(t *testing.T) {
	in := &counted{}
	cmd := NewCommand()
	cmd.SilenceErrors = true
	cmd.SetIn(in)
	cmd.SetOut(gone{})
	cmd.SetErr(io.Discard)
	cmd.SetArgs([]string{"sieve"})
	if err := cmd.ExecuteContext(context.Background()); err != nil || in.reads > 3 {
		t.Errorf("%v after %d reads", err, in.reads)
	}
	cmd.SetOut(brokenIO{})
	if err := cmd.ExecuteContext(context.Background()); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("error: %v", err)
	}
}

// counted is an endless input of different keys.
type counted struct{ reads int }

func (c *counted) Read(p []byte) (int, error) {
	c.reads++
	return copy(p, fmt.Sprintf("key %d\n", c.reads)), nil
}
