package store

import (
	"errors"
	"testing"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/verdict"
)

// A file that could not be read to its end has no digest. It must not pass for
// another one of the same size that has none yet.
func TestMendedFileOfTheSameSize(t *testing.T) {
	const (
		good   = "one.example\n"
		broken = "one.example\nt\x00o.example\n"
		mended = "one.example\ntwo.example\n"
	)
	t.Run("seen broken", func(t *testing.T) {
		path := write(t, inDir(t, "list"), good)
		s := openStill(t, fast(blockList("list", path)))
		write(t, path, broken)
		if _, err := rescan(t, s); !errors.Is(err, listfile.ErrBinary) {
			t.Fatalf("broken: %v", err)
		}
		write(t, path, mended)
		if set, err := rescan(t, s); err != nil || listed(t, set, "a@two.example") != verdict.Reject {
			t.Errorf("mended: %v, %d entries", err, set.Stats().Entries)
		}
	})
	t.Run("read ahead while broken", func(t *testing.T) {
		path := write(t, inDir(t, "list"), good)
		s := openStill(t, fast(blockList("list", path)))
		write(t, path, broken)
		s.stage(t.Context())
		write(t, path, mended)
		if set, err := rescan(t, s); err != nil || listed(t, set, "a@two.example") != verdict.Reject {
			t.Errorf("mended: %v, %d entries", err, set.Stats().Entries)
		}
	})
}
