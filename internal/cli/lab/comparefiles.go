package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"spamgate/internal/cli"
	"spamgate/internal/hashlab"
	"spamgate/internal/hashlab/page"
	"spamgate/internal/hashlab/render"
)

// compareFiles are the files that a comparison writes at its end.
type compareFiles struct {
	page     string      // "" for none
	pictures string      // the folder, "" for none
	results  string      // "" for none
	taken    []namedFile // those that must stay as they are
}

// namedFile is a file that is there, and what it is for the user.
type namedFile struct {
	what string // "the file of --corpus keys.txt"
	info fs.FileInfo
}

// ofPage is what the page is called among the taken files.
const ofPage = "the page of --html"

func (f *compareFiles) some() bool { return f.page != "" || f.pictures != "" || f.results != "" }

// targets checks where files are to go.
func (c *comparison) targets(cmd *cobra.Command) (*compareFiles, error) {
	taken, err := c.taken(cmd)
	if err != nil {
		return nil, err
	}
	f := &compareFiles{taken: taken}
	if cmd.Flags().Changed("html") {
		if _, _, err := f.pageTarget(c.pagePath); err != nil {
			return nil, err
		}
		f.page = c.pagePath
	}
	if cmd.Flags().Changed("results") {
		if _, _, err := f.resultTarget(c.resultPath); err != nil {
			return nil, err
		}
		if f.page != "" && filepath.Clean(c.pagePath) == filepath.Clean(c.resultPath) {
			return nil, fmt.Errorf("--html and --results are both %s: name two files", c.pagePath)
		}
		f.results = c.resultPath
	}
	if a, b := filepath.Clean(c.pagePath), filepath.Clean(c.pictureRoot); f.page != "" && filepath.Base(a) == filepath.Base(b) && sameFolder(filepath.Dir(a), filepath.Dir(b)) {
		return nil, fmt.Errorf("--html and --pictures are both %s: name a file and a folder", c.pagePath)
	}
	if cmd.Flags().Changed("pictures") {
		if err := checkFolder("--pictures", c.pictureRoot); err != nil {
			return nil, err
		}
		f.pictures = c.pictureRoot
		if err := f.checkPictures(); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// taken returns the regular files that are read and the one that standard output goes to.
// No output file may be one of them.
func (c *comparison) taken(cmd *cobra.Command) ([]namedFile, error) {
	var all []namedFile
	for _, path := range c.corpora {
		if path == stdinName {
			if info := regular(cmd.InOrStdin()); info != nil {
				all = append(all, namedFile{"the file of standard input", info})
			}
		} else if info, err := os.Stat(path); err == nil {
			all = append(all, namedFile{"the file of --corpus " + path, info})
		}
	}
	for _, flag := range [][2]string{{"--indices ", c.indices}, {"--from ", c.from}} {
		if info, err := os.Stat(flag[1]); flag[1] != "" && err == nil {
			all = append(all, namedFile{"the file of " + flag[0] + flag[1], info})
		}
	}
	if info := regular(cmd.OutOrStdout()); info != nil {
		if what := whichOf(all, info); what != "" {
			return nil, fmt.Errorf("standard output goes to %s: send it to another", what)
		}
		all = append(all, namedFile{"the file of standard output", info})
	}
	return all, nil
}

// regular returns the file information of a stream that is a regular file, or nil.
func regular(stream any) fs.FileInfo {
	file, ok := stream.(*os.File)
	if !ok {
		return nil
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	return info
}

// whichOf returns the role of a file among some, or "". It compares files, not names, since
// links lead to the same file.
func whichOf(some []namedFile, info fs.FileInfo) string {
	for _, namedFile := range some {
		if os.SameFile(namedFile.info, info) {
			return namedFile.what
		}
	}
	return ""
}

// target checks an output file, and refuses a taken one.
func (f *compareFiles) target(flag, path string) (string, fs.FileMode, error) {
	target, perm, err := cli.CheckTarget(flag, path)
	if err != nil {
		return "", 0, err
	}
	if info, err := os.Stat(target); err == nil {
		if what := whichOf(f.taken, info); what != "" {
			return "", 0, fmt.Errorf("%s %s is %s, which must not be replaced: name another", flag, path, what)
		}
	}
	return target, perm, nil
}

// pageTarget checks the output file of the page.
func (f *compareFiles) pageTarget(path string) (string, fs.FileMode, error) {
	return f.ownTarget("--html", path, "only a page that can be read is replaced", "a page of this command", page.IsOurs)
}

// resultTarget checks the output file of the results.
func (f *compareFiles) resultTarget(path string) (string, fs.FileMode, error) {
	return f.ownTarget("--results", path, "only results that can be read are replaced", "results", func(r io.Reader) (bool, error) {
		_, err := render.ReadResults(r)
		return err == nil, nil
	})
}

// ownTarget checks an output file. An existing one must be empty or what this command
// writes there, so that a mistyped name does not destroy another file.
func (f *compareFiles) ownTarget(flag, path, rule, what string, isOurs func(io.Reader) (bool, error)) (string, fs.FileMode, error) {
	target, perm, err := f.target(flag, path)
	if err != nil {
		return "", 0, err
	}
	file, err := os.Open(target)
	if errors.Is(err, fs.ErrNotExist) {
		return target, perm, nil
	}
	if err != nil {
		return "", 0, fmt.Errorf("%s: %w: %s: name another file", flag, err, rule)
	}
	defer file.Close()
	info, err := file.Stat()
	ours := err == nil && info.Size() == 0
	if err == nil && !ours {
		ours, err = isOurs(file)
	}
	switch {
	case err != nil:
		return "", 0, fmt.Errorf("%s %s: %w", flag, path, err)
	case !ours:
		return "", 0, fmt.Errorf("%s %s: there is a file that is neither empty nor %s, and it is not replaced: name another, or remove it first", flag, path, what)
	}
	return target, perm, nil
}

// checkFolder wants a folder, or one that it can be made in.
func checkFolder(flag, path string) error {
	if path == "" {
		return fmt.Errorf("no folder to write to: name one with %s FOLDER", flag)
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		info, err = os.Stat(filepath.Dir(filepath.Clean(path)))
	}
	if err == nil && !info.IsDir() {
		err = errors.New("not a folder")
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w: name a folder, or a new one in a folder that exists", flag, path, err)
	}
	return nil
}

// checkPictures wants none of the files that a picture may be called like to be
// a taken one or the page. How the pictures are called is known only when all is
// measured.
func (f *compareFiles) checkPictures() error {
	taken := f.taken
	if f.page != "" {
		if info, err := os.Stat(f.page); err == nil {
			taken = append(taken[:len(taken):len(taken)], namedFile{ofPage, info})
		}
		if isPicture(f.page) && sameFolder(filepath.Dir(f.page), f.pictures) {
			return fmt.Errorf("--html %s may be a picture of --pictures %s: name a page that ends in .html", f.page, f.pictures)
		}
	}
	entries, err := os.ReadDir(f.pictures)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--pictures: %w", err)
	}
	for _, entry := range entries {
		path := filepath.Join(f.pictures, entry.Name())
		info, err := os.Stat(path)
		if !isPicture(path) || err != nil {
			continue
		}
		if what := whichOf(taken, info); what != "" {
			return fmt.Errorf("--pictures %s: %s in it is %s, which a picture might replace: name another folder", f.pictures, entry.Name(), what)
		}
	}
	return nil
}

// isPicture reports whether a file is called like a picture.
func isPicture(path string) bool { return strings.EqualFold(filepath.Ext(path), ".svg") }

func sameFolder(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// write writes the files. Each is checked once more, since the measuring may
// have taken long.
func (f *compareFiles) write(ctx context.Context, r *hashlab.Report) error {
	if f.page != "" {
		if err := f.writePage(ctx, r); err != nil {
			return err
		}
	}
	if f.results != "" {
		target, perm, err := f.resultTarget(f.results)
		if err != nil {
			return err
		}
		if _, err := cli.ReplaceFile(ctx, target, perm, func(w io.Writer) (int64, error) { return 0, render.Results(w, r) }); err != nil {
			return err
		}
	}
	if f.pictures == "" {
		return nil
	}
	pictures, err := page.Pictures(r)
	if err != nil {
		return err
	}
	if err := os.Mkdir(f.pictures, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("--pictures: %w", err)
	}
	for _, p := range pictures {
		target, perm, err := f.target("--pictures", filepath.Join(f.pictures, p.File()))
		if err != nil {
			return err
		}
		_, err = cli.ReplaceFile(ctx, target, perm, func(w io.Writer) (int64, error) {
			n, err := io.WriteString(w, p.SVG)
			return int64(n), err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// writePage writes the page, which is taken from then on.
func (f *compareFiles) writePage(ctx context.Context, r *hashlab.Report) error {
	target, perm, err := f.pageTarget(f.page)
	if err != nil {
		return err
	}
	if _, err := cli.ReplaceFile(ctx, target, perm, func(w io.Writer) (int64, error) { return 0, page.Write(w, r) }); err != nil {
		return err
	}
	info, err := os.Stat(target)
	if err != nil {
		return fmt.Errorf("--html %s: it was written, and is gone: %w", f.page, err)
	}
	f.taken = append(f.taken, namedFile{ofPage, info})
	return nil
}
