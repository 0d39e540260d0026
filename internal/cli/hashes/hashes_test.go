package hashes

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"spamgate/hashfamily"
	"spamgate/internal/cli"
	"spamgate/internal/disposable"
)

// runHashes runs "spamgate hashes" with standard input and arguments.
func runHashes(in io.Reader, args ...string) (string, error) {
	var out bytes.Buffer
	cmd := NewCommand()
	cmd.SilenceErrors = true
	cmd.SetIn(in)
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(context.Background())
	return out.String(), err
}

// unescapeKey reads the form that --escape writes.
func unescapeKey(t *testing.T, s string) []byte {
	t.Helper()
	parts := strings.Split(s, `\x`)
	key := []byte(parts[0])
	for _, part := range parts[1:] {
		b, err := hex.DecodeString(part[:2])
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		key = append(append(key, b...), part[2:]...)
	}
	return key
}

// TestHashesSumVectors gives the keys of the reference vectors and wants the
// file of the vectors back.
func TestHashesSumVectors(t *testing.T) {
	want, err := os.ReadFile("../../../hashfamily/testdata/hashes.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var keys bytes.Buffer
	var args []string
	for _, line := range strings.Split(strings.TrimSuffix(string(want), "\n"), "\n")[1:] {
		escaped, _, _ := strings.Cut(line, "\t")
		key := unescapeKey(t, escaped)
		if bytes.ContainsRune(key, '\n') {
			t.Fatalf("the vectors hold a key with a line feed, which no line can be: %q", key)
		}
		keys.Write(key)
		keys.WriteByte('\n')
		args = append(args, string(key))
	}

	got, err := runHashes(&keys, "sum", "--tsv", "--escape")
	if err != nil || got != string(want) {
		t.Errorf("from standard input: %v\n%s", err, got)
	}
	got, err = runHashes(strings.NewReader("not read"), append([]string{"sum", "--escape", "--"}, args...)...)
	if err != nil || got != string(want) {
		t.Errorf("from arguments: %v\n%s", err, got)
	}
}

// TestHashesSumKeys checks what of the input is key: everything but line feeds.
func TestHashesSumKeys(t *testing.T) {
	for _, c := range []struct {
		in   string
		keys []string
	}{
		{"", nil},
		{"\n", []string{""}},
		{"a", []string{"a"}},
		{"a\n", []string{"a"}},
		{"a\n\n", []string{"a", ""}},
		{"\n\na", []string{"", "", "a"}},
		{"a\r\nb\r", []string{"a\r", "b\r"}},
		{" a \n#b # c\n\t", []string{" a ", "#b # c", "\t"}},
		{"a\x00b\n\xff\xfe\\\n", []string{"a\x00b", "\xff\xfe\\"}},
		{strings.Repeat("x", maxKeyBytes) + "\ny", []string{strings.Repeat("x", maxKeyBytes), "y"}},
	} {
		for _, flag := range []string{"--tsv", "--escape"} {
			got, err := runHashes(strings.NewReader(c.in), "sum", flag)
			if err != nil {
				t.Errorf("%.40q: %v", c.in, err)
				continue
			}
			want := "key"
			for _, h := range hashfamily.Hashes() {
				want += "\t" + h.Name
			}
			want += "\n"
			for _, key := range c.keys {
				if flag == "--escape" {
					escaped := string(appendEscaped(nil, []byte(key)))
					if back := unescapeKey(t, escaped); string(back) != key {
						t.Errorf("%.40q escapes to %.40q and back to %.40q", key, escaped, back)
					}
					want += escaped
				} else {
					want += key
				}
				for _, h := range hashfamily.Hashes() {
					want += "\t" + strconv.Itoa(int(h.Sum([]byte(key))))
				}
				want += "\n"
			}
			if got != want {
				t.Errorf("%s of %.40q:\n%.400q\nwant\n%.400q", flag, c.in, got, want)
			}
		}
	}
}

func TestHashesSumEscape(t *testing.T) {
	var all []byte
	for c := range 256 {
		all = append(all, byte(c))
	}
	escaped := string(appendEscaped(nil, all))
	if back := unescapeKey(t, escaped); !bytes.Equal(back, all) {
		t.Errorf("all bytes escape to %q and back to %q", escaped, back)
	}
	for _, c := range []byte(escaped) {
		if c <= ' ' || c > '~' {
			t.Errorf("byte %#x stands in the escaped form", c)
		}
	}
}

func TestHashesSumTable(t *testing.T) {
	got, err := runHashes(nil, "sum", "spam@example.com", "\x1b[31m\xff")
	if err != nil {
		t.Fatal(err)
	}
	const want = `"spam@example.com"  16 bytes
  hash     decimal         hex  bit of 2^28
  RS    1562754642  0x5d25be52    220577362
  JS    3304059631  0xc4eff2ef     82834159
  PJW    139267229  0x084d0c9d    139267229
  ELF    139267229  0x084d0c9d    139267229
  BKDR  2926491406  0xae6eb70e    242136846
  SDBM   621486278  0x250b20c6     84615366
  DJB    317460879  0x12ec118f     49025423
  DEK    802055997  0x2fce673d    265185085
  BP    1440282605  0x55d8f7ed     98105325
  FNV    631878944  0x25a9b520     95008032
  AP    1473236412  0x57cfcdbc    131059132

"\x1b[31m\xff"  6 bytes
`
	if !strings.HasPrefix(got, want) {
		t.Errorf("table:\n%s\nwant it to begin\n%s", got, want)
	}

	for _, key := range []string{strings.Repeat("x", 300) + ".example", strings.Repeat("用户", 100), strings.Repeat("\x00", 100), strings.Repeat("x", 60), strings.Repeat("x", 61)} {
		got, err := runHashes(nil, "sum", key)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(got, "\n")
		columns := 0
		for _, r := range first {
			if columns++; r > '~' {
				columns++
			}
		}
		if columns > 80 || strings.Contains(first, "...") != (len(key) > 60) {
			t.Errorf("%d columns: %s", columns, first)
		}
	}
}

func TestHashesSumJSON(t *testing.T) {
	got, err := runHashes(strings.NewReader("<>&\n\xff\xfe\n\n\"\\\u2028"), "sum", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var objects []struct {
		Key    *string           `json:"key"`
		KeyHex string            `json:"key_hex"`
		Hashes map[string]uint32 `json:"hashes"`
	}
	if err := json.Unmarshal([]byte(got), &objects); err != nil {
		t.Fatalf("%v\n%s", err, got)
	}
	keys := []string{"<>&", "\xff\xfe", "", "\"\\\u2028"}
	if len(objects) != len(keys) {
		t.Fatalf("%d objects, want %d:\n%s", len(objects), len(keys), got)
	}
	for i, o := range objects {
		if o.KeyHex != hex.EncodeToString([]byte(keys[i])) {
			t.Errorf("key_hex %s for %q", o.KeyHex, keys[i])
		}
		if i == 1 {
			if o.Key != nil {
				t.Errorf("key %q for bytes that are no UTF-8, want null", *o.Key)
			}
		} else if o.Key == nil || *o.Key != keys[i] {
			t.Errorf("key %v for %q", o.Key, keys[i])
		}
		if len(o.Hashes) != 11 {
			t.Errorf("%d hashes for %q", len(o.Hashes), keys[i])
		}
		for _, h := range hashfamily.Hashes() {
			if o.Hashes[h.Name] != h.Sum([]byte(keys[i])) {
				t.Errorf("%s of %q: %d", h.Name, keys[i], o.Hashes[h.Name])
			}
		}
	}
	if !strings.Contains(got, `"<>&"`) || !strings.Contains(got, `{"RS":`) {
		t.Errorf("not as easy to read as it could be:\n%s", got)
	}

	if got, err := runHashes(strings.NewReader(""), "sum", "--json"); err != nil || strings.Join(strings.Fields(got), "") != "[]" {
		t.Errorf("without keys: %q, %v; want an empty array", got, err)
	}
}

// TestHashesSumAnswersAtOnce types a key and waits for its hashes before the
// next.
func TestHashesSumAnswersAtOnce(t *testing.T) {
	in, typing := io.Pipe()
	screen, out := io.Pipe()
	cmd := NewCommand()
	cmd.SetIn(in)
	cmd.SetOut(out)
	cmd.SetArgs([]string{"sum", "--escape"})
	done := make(chan error, 1)
	go func() {
		err := cmd.ExecuteContext(context.Background())
		out.CloseWithError(err)
		done <- err
	}()
	var seen []byte
	readUntil := func(text string) {
		buf := make([]byte, 4096)
		for !bytes.Contains(seen, []byte(text)) {
			n, err := screen.Read(buf)
			if err != nil {
				t.Fatalf("%v after %q", err, seen)
			}
			seen = append(seen, buf[:n]...)
		}
	}
	readUntil("AP\n")
	for _, key := range []string{"first", "second"} {
		io.WriteString(typing, key+"\n")
		readUntil("\n" + key + "\t")
		readUntil("\t" + strconv.Itoa(int(hashfamily.AP([]byte(key)))) + "\n")
	}
	typing.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// endless is x forever, without a line feed.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestHashesErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out.bin")
	for _, c := range []struct {
		in   io.Reader
		args []string
		says string
	}{
		{io.MultiReader(strings.NewReader("a\nb\n"), endless{}), []string{"sum"}, "standard input, line 3: longer than 1048576 bytes"},
		{strings.NewReader("a\n" + strings.Repeat("x", maxKeyBytes+1)), []string{"bitmap", "--out", out}, "standard input, line 2: longer than 1048576 bytes"},
		{io.MultiReader(strings.NewReader("a\n"), brokenIO{}), []string{"sum", "--tsv"}, "standard input, line 2: broken"},
		{nil, []string{"sum", "--json", "--tsv", "a"}, "--json does not go with"},
		{nil, []string{"sum", "--jsn"}, "--jsn"},
		{nil, []string{"summ"}, `"summ"`},
		{nil, []string{"bitmap", "a"}, "--out FILE"},
		{nil, []string{"bitmap", "--out", "-", "a"}, "name a file"},
		{nil, []string{"bitmap", "--out", dir, "a"}, "not a regular file"},
		{nil, []string{"bitmap", "--out", os.DevNull, "a"}, "not a regular file"},
		{nil, []string{"bitmap", "--out", filepath.Join(dir, "none", "out.bin"), "a"}, "a folder that exists"},
		{nil, []string{"bitmap", "--out", filepath.Join(file, "out.bin"), "a"}, "not a directory"},
	} {
		_, err := runHashes(c.in, c.args...)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: error %v; want it to say %q", c.args, err, c.says)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left in the folder: %v, %v; want only the file of before", entries, err)
	}
}

// TestHashesOutputFails wants an error, and an end, when output goes nowhere.
func TestHashesOutputFails(t *testing.T) {
	for _, args := range [][]string{{"sum"}, {"sum", "--tsv"}, {"sum", "--json"}, {"sum", "a"}, {"sum", "--json", "a"}} {
		cmd := NewCommand()
		cmd.SilenceErrors = true
		cmd.SetIn(strings.NewReader(strings.Repeat("key\n", 100_000)))
		cmd.SetOut(brokenIO{})
		cmd.SetArgs(args)
		if err := cmd.ExecuteContext(context.Background()); !errors.Is(err, errBroken) {
			t.Errorf("%v: %v, want the writer's error", args, err)
		}
	}
}

func TestHashesStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	cmd := NewCommand()
	cmd.SilenceErrors = true
	cmd.SetIn(strings.NewReader("a\n"))
	cmd.SetOut(io.Discard)
	cmd.SetArgs([]string{"sum"})
	if err := cmd.ExecuteContext(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's error", err)
	}
}

// TestHashesBitmap makes the bitmap of the real list, whose checksum an
// independent implementation gave.
func TestHashesBitmap(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bitmap.bin")
	got, err := runHashes(bytes.NewReader(disposable.Text()), "bitmap", "--out", path)
	if err != nil {
		t.Fatal(err)
	}
	want := "file        " + path + ` (33554432 bytes)
keys        121570
set bits    1091490 of 268435456
fill ratio  0.00406612
SHA-256     0162293cc620abb3fa7348b4cd4fa9c6d7558575d6d39afd8249831be8b60cb2
`
	if got != want {
		t.Errorf("report:\n%s\nwant\n%s", got, want)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	sum := sha256.New()
	if n, err := io.Copy(sum, file); n != 1<<25 || err != nil {
		t.Errorf("the file has %d bytes, %v", n, err)
	}
	if !strings.Contains(want, hex.EncodeToString(sum.Sum(nil))) {
		t.Errorf("the file's SHA-256 is %x", sum.Sum(nil))
	}
}

func TestHashesBitmapJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a&b.bin")
	got, err := runHashes(nil, "bitmap", "--json", "--out", path, "a", "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	var report bitmapReport
	if err := json.Unmarshal([]byte(got), &report); err != nil {
		t.Fatalf("%v\n%s", err, got)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := bitmapReport{
		File: path, Bytes: 1 << 25, Keys: 3, Bits: 1 << 28, SetBits: 10, FillRatio: 10.0 / (1 << 28),
		SHA256: fmt.Sprintf("%x", sha256.Sum256(content)),
	}
	if report != want || !strings.Contains(got, "a&b.bin") {
		t.Errorf("report %+v, want %+v", report, want)
	}
}

// TestReplaceFile holds that a file is replaced wholly or not at all, and that
// nothing else stays in the folder.
func TestReplaceFile(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	for _, c := range []struct {
		name  string
		write func(io.Writer) (int64, error)
		want  string
		err   error
	}{
		{"good", func(w io.Writer) (int64, error) { n, err := io.WriteString(w, "new"); return int64(n), err }, "new", nil},
		{"fails half-way", func(w io.Writer) (int64, error) { io.WriteString(w, "half"); return 4, errBroken }, "old", errBroken},
		{"interrupted", func(w io.Writer) (int64, error) { io.WriteString(w, "whole"); cancel(); return 5, nil }, "old", context.Canceled},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "file")
		if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("file", filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
		target, perm, err := cli.CheckTarget("--out", filepath.Join(dir, "link"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cli.ReplaceFile(ctx, target, perm, c.write); !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.name, err, c.err)
		}
		if got, err := os.ReadFile(path); string(got) != c.want || err != nil {
			t.Errorf("%s: the file holds %q, %v; want %q", c.name, got, err, c.want)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v; want that of before", c.name, info.Mode(), err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 || entries[1].Type() != fs.ModeSymlink {
			t.Errorf("%s: the folder holds %v, %v; want the file and the link", c.name, entries, err)
		}
	}
}
