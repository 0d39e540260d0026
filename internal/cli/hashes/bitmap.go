package hashes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"spamgate/blocklist/bloom"
	"spamgate/hashfamily"
	"spamgate/internal/cli"
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

Bytes are numbers from 0 to 255. The original C functions, compiled where char
is signed (x86), set other bits for keys with bytes above 127, such as UTF-8:
programs that share the bitmap have to be compiled with -funsigned-char.

The file is created or replaced only when it is complete. The command prints the
number of keys (repeated ones count) and of set bits, the fill ratio and the
SHA-256 of the bitmap.

` + keysHelp,
		Example: `  spamgate hashes bitmap --out bitmap.bin < domains.txt
  spamgate hashes bitmap --out bitmap.bin --json spam@example.com @example.net`,
		Args:         cobra.ArbitraryArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := makeBitmap(cmd.Context(), path, args, cmd.InOrStdin())
			if err != nil {
				return err
			}
			return report.print(cmd.OutOrStdout(), asJSON)
		},
	}
	cmd.Flags().StringVar(&path, "out", "", "the `FILE` to write (required)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "report as a JSON object")
	return cmd
}

// makeBitmap fills a classic filter with the keys and writes it to path.
func makeBitmap(ctx context.Context, path string, args []string, in io.Reader) (bitmapReport, error) {
	// Asked first: a mistake here should not cost the time to read the keys.
	target, perm, err := cli.CheckTarget("--out", path)
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
	report.Bytes, err = cli.ReplaceFile(ctx, target, perm, func(w io.Writer) (int64, error) {
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
