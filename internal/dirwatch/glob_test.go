package dirwatch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// globTree makes files and links in a new directory.
func globTree(t *testing.T) string {
	dir := inDir(t, "")
	for _, d := range []string{"sub/deep", "more", "empty", "real"} {
		must(t, os.MkdirAll(filepath.Join(dir, d), 0o755))
	}
	for _, f := range []string{"a.txt", "b.txt", "c.list", ".hidden.txt", "sub/a.txt", "sub/deep/a.txt", "more/a.txt", "real/x[1].txt", "we[ird].txt"} {
		write(t, filepath.Join(dir, f), "")
	}
	for link, target := range map[string]string{
		"link.txt":          "hop1",
		"hop1":              "sub/hop2",
		"sub/hop2":          dir + "/real/../a.txt",
		"dirlink":           "sub/deep",
		"loop":              "loop",
		"dangling.lnk":      "nowhere",
		"more/up.lst":       "../a.txt",
		".#a.txt":           "user@host.1234",
		"sub/deep/back.lst": "../../a.txt",
		"starlink":          "real/x[1].txt",
	} {
		must(t, os.Symlink(target, filepath.Join(dir, link)))
	}
	return dir
}

func TestFind(t *testing.T) {
	dir := globTree(t)
	cases := []struct {
		paths string // with commas between, below dir
		want  string // files below dir, or the error
		err   error
	}{
		{"a.txt", "a.txt", nil},
		{"a.txt,a.txt", "a.txt", nil},
		{"b.txt,*.txt", "b.txt a.txt link.txt we[ird].txt", nil},
		{".*.txt,a.txt", "", fs.ErrNotExist}, // the lock of an editor, asked for
		{".h*.txt", ".hidden.txt", nil},
		{"*/a.txt", "dirlink/a.txt more/a.txt sub/a.txt", nil}, // past loops, dangling links, links to files
		{"[ms]*/a.txt", "more/a.txt sub/a.txt", nil},
		{"m*e", "", ErrNoMatch}, // a directory
		{"link.txt", "link.txt", nil},
		{"dirlink/a.txt", "dirlink/a.txt", nil},
		{"dirlink/../a.txt", "dirlink/../a.txt", nil}, // sub/a.txt: above where the link leads
		{"dirlink/back.lst", "dirlink/back.lst", nil},
		{"more/up.lst", "more/up.lst", nil},
		{"starlink", "starlink", nil},
		{`we\[ird].txt`, "we[ird].txt", nil},
		{"we[ird].txt", "", ErrNoMatch},
		{"./sub//a.txt", "sub/a.txt", nil},
		{"missing.txt", "missing.txt", fs.ErrNotExist},
		{"missing/a.txt", "missing", fs.ErrNotExist},
		{"a.txt/b.txt", "a.txt/b.txt", syscall.ENOTDIR},
		{"loop", "loop", syscall.ELOOP},
		{"*.lnk", "dangling.lnk", fs.ErrNotExist},
		{"empty/*.txt", "empty/*.txt", ErrNoMatch},
		{"nodir/*.txt", "nodir", fs.ErrNotExist},
	}
	for _, c := range cases {
		var paths []string
		for p := range strings.SplitSeq(c.paths, ",") {
			paths = append(paths, dir+"/"+p)
		}
		files, err := Find(paths, func(dir, name string) {})
		if !errors.Is(err, c.err) {
			t.Errorf("%s: error %v, want %v", c.paths, err, c.err)
			continue
		}
		if c.err != nil {
			var p *fs.PathError
			if !errors.As(err, &p) || !strings.HasPrefix(p.Path, dir) {
				t.Errorf("%s: the error %v is not about a path", c.paths, err)
			}
			continue
		}
		for i := range files {
			if _, err := os.Stat(files[i]); err != nil {
				t.Errorf("%s: %v", c.paths, err)
			}
			files[i] = strings.TrimPrefix(files[i], dir+"/")
		}
		if got := strings.Join(files, " "); got != c.want {
			t.Errorf("%s: got %s, want %s", c.paths, got, c.want)
		}
	}
}

// Every directory in which a change leads elsewhere is announced, free of links.
func TestFindWatches(t *testing.T) {
	dir := globTree(t)
	cases := []struct{ path, want string }{
		{"link.txt", "link.txt hop1 sub sub/hop2 real a.txt"},
		{"dirlink/a.txt", "dirlink sub sub/deep sub/deep/a.txt"},
		{"missing/a.txt", "missing"},
		{"[ms]*/a.txt", "[ms]* more/a.txt real real/x[1].txt sub/a.txt"},
		{"dangling.lnk", "dangling.lnk nowhere"},
	}
	for _, c := range cases {
		var got []string
		Find([]string{dir + "/" + c.path}, func(d, name string) {
			// Those above are the same for all.
			if below, ok := strings.CutPrefix(d, dir); ok {
				got = append(got, strings.TrimPrefix(below+"/", "/")+name)
			}
		})
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.path, s, c.want)
		}
	}
}
