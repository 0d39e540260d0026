package listfiles

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"spamgate/blocklist"
	"spamgate/blocklist/listfile"
	"spamgate/internal/config"
	"spamgate/internal/setup"
)

// ErrChanges means that a list's file is not the one that serves, or not any more.
var ErrChanges = errors.New("the list changes just now")

// PlainOptions returns how a list is written in the gate's own format.
func PlainOptions(l config.List) listfile.WriteOptions {
	return listfile.WriteOptions{Format: listfile.Plain, Allow: l.Type == "allow", Exact: l.Match == "exact"}
}

// IsServedFile reports whether a list is a single plain file that serves as it is: then
// [CopyServed] writes its entries, ten times as fast as an [InOrder].
func IsServedFile(l config.List, stats blocklist.ListStats) bool {
	return stats.Err == nil && stats.Sum != "" && l.Format == listfile.Plain &&
		len(stats.Files) == 1 && stats.Protected+stats.Disallowed == 0
}

// CopyServed writes the entries of the file that serves to w, without private notes, and
// without reasons if strangers may not read them. It returns how many these are. After an
// error, which may be ErrChanges, what was written is of no use.
func CopyServed(w io.Writer, l config.List, stats blocklist.ListStats) (n int, err error) {
	path := stats.Files[0].Path
	file, err := setup.Opener(l).Open(path)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrChanges, err)
	}
	defer file.Close()
	hash := sha256.New()
	raw := io.TeeReader(file, hash)
	options := setup.ListOptions(l)
	options.Now = 0 // entries that have expired are left out
	o, out := PlainOptions(l), bufio.NewWriter(w)
	for e, err := range listfile.NewReader(raw, options).All() {
		if err != nil {
			return n, fmt.Errorf("%w: %w", ErrChanges, err)
		}
		e.Note = ""
		if !l.PublicReason {
			e.Reason = ""
		}
		if _, err := out.WriteString(o.PlainLine(e)); err != nil {
			return n, err
		}
		n++
	}
	if _, err := io.Copy(io.Discard, raw); err != nil {
		return n, err
	}
	if sum, err := setup.Opener(l).ContentSumWith([]string{path}, path, [sha256.Size]byte(hash.Sum(nil))); err != nil || sum != stats.Sum {
		return n, ErrChanges
	}
	return n, out.Flush()
}
