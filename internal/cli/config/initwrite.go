package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"spamgate/internal/atomicfile"
	"spamgate/internal/cli"
	"spamgate/internal/config"
)

// fileMode is the mode of the files that init makes, whatever the umask: the gate's user
// reads them.
const fileMode = 0o644

// write writes the configuration, and the lists that are missing. It returns the paths
// that it made. After an error none of them is left.
func (o *initOptions) write(cmd *cobra.Command, c *config.Config) (made []string, err error) {
	if o.out == "" {
		if o.dryRun || o.force {
			return nil, errors.New("--dry-run and --force go with --out FILE; without it nothing is written")
		}
		return nil, nil
	}
	target, _, err := cli.CheckTarget("--out", o.out)
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(target); err == nil && !o.force {
		return nil, o.exists()
	}
	if err := machineFaults(c, cmd.ErrOrStderr()); err != nil {
		return nil, err
	}
	ctx, stop := cli.Interruptible(cmd)
	defer stop()
	defer func() {
		if err != nil && !o.dryRun {
			for _, path := range slices.Backward(made) {
				_ = os.Remove(path)
			}
			made = nil
		}
	}()
	for _, l := range fileLists {
		path := filepath.Join(filepath.Dir(target), l.file)
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		dir := filepath.Dir(path)
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) && !slices.Contains(made, dir) {
			if !o.dryRun {
				if err := makeDir(dir); err != nil {
					return made, err
				}
			}
			made = append(made, dir)
		}
		if !o.dryRun {
			if err := makeList(path, l.about); err != nil {
				return made, err
			}
		}
		made = append(made, path)
	}
	if o.dryRun {
		return append(made, target), nil
	}
	if err := o.place(ctx, target, []byte(o.configText())); err != nil {
		return made, err
	}
	return append(made, target), nil
}

func (o *initOptions) exists() error {
	return fmt.Errorf("--out %s: the file exists, and is left as it is; replace it with --force, or name another file", o.out)
}

// makeDir makes the directory of the lists.
func makeDir(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("%w: the lists belong there; run the command as a user who may write there, or name another place with --out", err)
	}
	return os.Chmod(dir, 0o755) // the umask may be strict
}

// makeList makes a list file that has only a comment.
func makeList(path, about string) error {
	text := "# " + about + " One entry a line, as spamgate's lists/README.md explains.\n"
	return placeFile(context.Background(), path, []byte(text), nil)
}

// place writes the configuration whole or not at all. A file that it replaces keeps its
// owner and mode.
func (o *initOptions) place(ctx context.Context, target string, text []byte) error {
	var old fs.FileInfo
	if o.force {
		info, err := os.Stat(target)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		old = info
	}
	err := placeFile(ctx, target, text, old)
	if errors.Is(err, fs.ErrExist) {
		return o.exists()
	}
	return err
}

// placeFile writes a file that appears whole, in place of old or, if that is nil, of no
// file.
func placeFile(ctx context.Context, path string, text []byte, old fs.FileInfo) error {
	file, err := atomicfile.Create(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp", fileMode)
	if err != nil {
		return fmt.Errorf("making a file beside %s: %w", path, err)
	}
	defer file.Discard()
	mode := fs.FileMode(fileMode)
	if old != nil {
		mode = old.Mode().Perm()
		if owner, ok := old.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
			if err := file.Chown(int(owner.Uid), int(owner.Gid)); err != nil {
				return fmt.Errorf("giving the new %s to the owner of the old one: %w", path, err)
			}
		}
	}
	if err := file.Chmod(mode); err != nil {
		return err
	}
	if _, err := file.Write(text); err != nil {
		return fmt.Errorf("writing %s: %w; it is as it was", path, err)
	}
	if err := file.Sync(); err != nil {
		return fmt.Errorf("writing %s: %w; it is as it was", path, err)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted; %s is as it was", path)
	}
	if old == nil {
		err = file.PlaceNew(path)
	} else {
		err = file.Place(path)
	}
	if err != nil {
		return fmt.Errorf("putting %s in place: %w", path, err)
	}
	if err := file.SyncPlace(path); err != nil && !errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%s is written, but perhaps not yet on the disk: %w", path, err)
	}
	return nil
}

// outOrErr returns where people read what is not the configuration.
func (o *initOptions) outOrErr(cmd *cobra.Command) io.Writer {
	if o.out == "" {
		return cmd.ErrOrStderr()
	}
	return cmd.OutOrStdout()
}
