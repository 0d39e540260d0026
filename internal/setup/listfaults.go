package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"spamgate/blocklist/store"
	"spamgate/internal/config"
)

// PlaceLists adds to errors about unusable lists their place in the configuration and what to
// write there. It returns other errors unchanged.
func PlaceLists(c *config.Config, err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var errs []error
		for _, e := range joined.Unwrap() {
			errs = append(errs, PlaceLists(c, e))
		}
		return errors.Join(errs...)
	}
	list, ok := err.(*store.UnusableError)
	if !ok {
		return err
	}
	i := ListIndex(c, list.List)
	if i < 0 {
		return err
	}
	key := c.ListKey(i, "path")
	if c.Lists[i].URL != "" {
		key = c.ListKey(i, "url")
	}
	what := fmt.Sprintf("list %q has no usable version: %v", list.List, list.Err)
	hint := listRemedy(c.Lists[i], list)
	if list.Serves {
		what = fmt.Sprintf("list %q has no usable version with its new settings: %v", list.List, list.Err)
		hint += "; until then " + list.WayOut
	}
	return &placedError{c.Fault(key, what, strings.TrimPrefix(hint, "; ")), err}
}

// placedError is an error with its place in the configuration.
type placedError struct {
	place *config.Error
	err   error
}

func (e *placedError) Error() string { return e.place.Error() }
func (e *placedError) Unwrap() error { return e.err }

// listRemedy says what to do about a list that cannot be read.
func listRemedy(l config.List, e *store.UnusableError) string {
	const without = "write optional = true to start without it"
	path := new(fs.PathError)
	errors.As(e.Err, &path)
	switch {
	case l.URL != "":
		return without
	case errors.Is(e.Err, store.ErrNoMatch) && strings.Contains(l.Path, `\`):
		return `separate directories with "/"; correct path, or ` + without
	case errors.Is(e.Err, store.ErrNoMatch):
		return "correct the pattern in path, put a file there, or " + without
	case errors.Is(e.Err, fs.ErrNotExist) && path.Path != filepath.Clean(l.Path):
		return "correct path, make that directory and the file in it, or " + without
	case errors.Is(e.Err, fs.ErrNotExist):
		return fmt.Sprintf("%scorrect path, make the file, or %s", similar(path.Path), without)
	case errors.Is(e.Err, syscall.ENOTDIR):
		return "correct path, or " + without
	case errors.Is(e.Err, store.ErrNotRegular) && isDirectory(path.Path):
		return fmt.Sprintf("write the path of a file in it, or path = %q for all that end so", filepath.Join(path.Path, "*.txt"))
	case errors.Is(e.Err, store.ErrNotRegular):
		return "write the path of a regular file"
	case errors.Is(e.Err, fs.ErrPermission):
		return e.WayOut
	case e.Serves:
		return ""
	}
	return "mend the file, or " + without
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// similar suggests an existing file whose name resembles that of a missing one.
func similar(path string) string {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return ""
	}
	full := map[string]string{} // names by the part before the extension
	var stems []string
	for _, e := range entries {
		if stem := withoutEnding(e.Name()); !e.IsDir() && full[stem] == "" {
			full[stem] = e.Name()
			stems = append(stems, stem)
		}
	}
	if stem, ok := config.Nearest(withoutEnding(filepath.Base(path)), stems); ok {
		return fmt.Sprintf("did you mean %q? If not, ", full[stem])
	}
	return ""
}

func withoutEnding(name string) string {
	return strings.ToLower(strings.TrimSuffix(name, filepath.Ext(name)))
}
