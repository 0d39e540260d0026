package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"spamgate/blocklist/bloom"
	"spamgate/hashfamily"
	"spamgate/internal/durable"
)

// bitmapReport is what "hashes bitmap" says about the file it wrote.
type bitmapReport struct {
	File      string  `json:"file"`
	Bytes     int64   `json:"bytes"`
	Keys      uint64  `json:"keys"`
	Bits      uint64  `json:"bits"`
	SetBits   uint64  `json:"set_bits"`
	FillRatio float64 `json:"fill_ratio"`
	SHA256    string  `json:"sha256"`
}

func newHashesBitmapCommand() *cobra.Command {
	var path string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "bitmap --out FILE [KEY...]",
		Short: "Write the filter's raw bitmap of some keys",
		Long: `Write the raw bitmap of the classic filter with the given keys in it: 2^28 bits,
32 MiB. Each hash of each key sets bit (hash mod 2^28); bit i is bit i mod 8,
least significant first, of byte i/8. The keys are taken as they are, without
the normalisation that list entries get.

The file appears, or replaces the one before, only when it is complete. Printed
are the number of keys (repeated ones count), of set bits, the fill ratio and
the SHA-256 of the bitmap.

` + keysHelp,
		Example: `  spamgate hashes bitmap --out bitmap.bin < domains.txt
  spamgate hashes bitmap --out bitmap.bin --json spam@example.com @example.net`,
		Args:         cobra.ArbitraryArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := makeBitmap(cmd.Context(), path, args, cmd.InOrStdin())
			if err == nil {
				err = report.print(cmd.OutOrStdout(), asJSON)
			}
			if err != nil {
				return fmt.Errorf("hashes bitmap: %w", err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&path, "out", "", "the `FILE` to write (needed)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "report as a JSON object")
	return cmd
}

// makeBitmap fills a classic filter with the keys and writes it to path.
func makeBitmap(ctx context.Context, path string, args []string, in io.Reader) (bitmapReport, error) {
	// Asked first: a mistake here should not cost the time to read the keys.
	target, perm, err := checkTarget("--out", path)
	if err != nil {
		return bitmapReport{}, err
	}
	family, err := hashfamily.NewClassic(bloom.ClassicBits)
	if err != nil {
		return bitmapReport{}, err
	}
	filter, err := bloom.New(family)
	if err != nil {
		return bitmapReport{}, err
	}
	report := bitmapReport{File: path, Bits: filter.M()}
	err = eachKey(ctx, args, in, func(key []byte) error {
		filter.Add(key)
		report.Keys++
		return nil
	})
	if err != nil {
		return bitmapReport{}, err
	}
	sum := sha256.New()
	report.Bytes, err = replaceFile(ctx, target, perm, func(w io.Writer) (int64, error) {
		return filter.WriteTo(io.MultiWriter(w, sum))
	})
	if err != nil {
		return bitmapReport{}, err
	}
	report.SetBits, report.FillRatio = filter.SetBits(), filter.FillRatio()
	report.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return report, nil
}

func (r bitmapReport) print(w io.Writer, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(r); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
		return nil
	}
	_, err := fmt.Fprintf(w, "file        %s (%d bytes)\nkeys        %d\nset bits    %d of %d\nfill ratio  %.6g\nSHA-256     %s\n",
		r.File, r.Bytes, r.Keys, r.SetBits, r.Bits, r.FillRatio, r.SHA256)
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// checkTarget says which file the path that flag gives leads to, links followed,
// and with which permissions it is to be written: those it has, or the usual
// ones. Anything but a regular file is refused, since it would be replaced by one.
func checkTarget(flag, path string) (target string, perm fs.FileMode, err error) {
	switch path {
	case "":
		return "", 0, fmt.Errorf("no file to write: name one with %s FILE", flag)
	case "-":
		return "", 0, fmt.Errorf("%s -: standard output is for the report: name a file (./- for one that is called -)", flag)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return "", 0, fmt.Errorf("%s %s: %w: name a file in a folder that exists", flag, path, err)
		}
		return path, 0o666, nil
	case err != nil:
		return "", 0, fmt.Errorf("%s %s: %w", flag, path, err)
	case !info.Mode().IsRegular():
		return "", 0, fmt.Errorf("%s %s: not a regular file: name another", flag, path)
	}
	if target, err = filepath.EvalSymlinks(path); err != nil {
		return "", 0, fmt.Errorf("%s %s: %w", flag, path, err)
	}
	return target, info.Mode().Perm(), nil
}

// replaceFile makes path a file of what write writes. It writes beside it and
// renames when everything is on the disk; on an error, the end of ctx or a
// signal to end the process, path is as it was and nothing else is left.
func replaceFile(ctx context.Context, path string, perm fs.FileMode, write func(io.Writer) (int64, error)) (n int64, err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	file, err := durable.Create(filepath.Dir(path), filepath.Base(path)+".*.tmp", perm)
	if err != nil {
		return 0, fmt.Errorf("making a file beside %s: %w", path, err)
	}
	defer file.Discard()
	if info, statErr := os.Stat(path); statErr == nil {
		// The umask is for new files: one that is there keeps what it has.
		if err = file.Chmod(info.Mode().Perm()); err != nil {
			return 0, fmt.Errorf("giving %s the permissions of %s: %w", file.Name(), path, err)
		}
	}
	if n, err = write(file); err != nil {
		return n, fmt.Errorf("writing %s: %w", file.Name(), err)
	}
	if err = file.Sync(); err != nil {
		return n, fmt.Errorf("writing %s to the disk: %w", file.Name(), err)
	}
	if err = ctx.Err(); err != nil {
		return n, fmt.Errorf("interrupted, %s is as it was: %w", path, context.Cause(ctx))
	}
	if err = file.Place(path); err != nil {
		return n, fmt.Errorf("putting %s in place: %w", path, err)
	}
	// A folder that nobody may read cannot be synced.
	if err := durable.SyncDir(filepath.Dir(path)); err != nil && !errors.Is(err, fs.ErrPermission) {
		return n, fmt.Errorf("%s is written, but perhaps not yet on the disk: %w", path, err)
	}
	return n, nil
}
