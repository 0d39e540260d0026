// Package hashes holds the commands that compute the classic hashes.
package hashes

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"spamgate/blocklist/bloom"
	"spamgate/hashfamily"
	"spamgate/internal/cli"
)

// maxKeyBytes is the longest key that the hashes commands read from a line of
// standard input.
const maxKeyBytes = 1 << 20

// keysHelp is the part of the help that the hashes commands share.
const keysHelp = `Keys are the arguments. Without arguments they are read from standard input, one
per line. A key is raw bytes and nothing is trimmed: only a line feed ends a
line, so a carriage return or a space belongs to the key, "#" is data, and an
empty line is the empty key. A last line without a line feed counts. A line may
have up to 1 MiB. Put -- before arguments that start with a dash.`

// NewCommand returns the command group of the hashes.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hashes",
		Short: "Compute the eleven classic hashes",
		Long: `Compute the eleven classic hashes (RS, JS, PJW, ELF, BKDR, SDBM, DJB, DEK, BP,
FNV, AP) of keys, and the bits that they set in the filter. The program hashlab,
in the package spamgate-hashlab, compares hash families and attacks them.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, c := range []*cobra.Command{newHashesSumCommand(), newHashesBitmapCommand(), newHashesQueryCommand(), newHashesSieveCommand()} {
		cli.NameErrors(c)
		cmd.AddCommand(c)
	}
	return cmd
}

func newHashesSumCommand() *cobra.Command {
	var tsv, escape, asJSON bool
	cmd := &cobra.Command{
		Use:   "sum [KEY...]",
		Short: "Print the eleven hashes of each key",
		Long: `Print the eleven hashes of each key as unsigned 32-bit numbers, and the bit that
each sets in the filter of 2^28 bits.

FNV is "FNV (basis as prime)": it starts from 0 and multiplies by 0x811C9DC5,
the number with which FNV-1 and FNV-1a start. It is neither of these.

` + keysHelp + `

The table is for people; it shortens long keys. --tsv, --escape and --json are
for programs. In JSON "key" is null if the key is not UTF-8; "key_hex" always
holds its bytes.`,
		Example: `  spamgate hashes sum spam@example.com
  spamgate hashes sum --tsv < keys.txt > hashes.tsv
  printf 'caf\351\n' | spamgate hashes sum --escape
  spamgate hashes sum --json example.com | jq '.[0].hashes.AP'`,
		Args:         cobra.ArbitraryArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if asJSON && (tsv || escape) {
				return errors.New("--json does not go with --tsv or --escape: choose one of them")
			}
			out := bufio.NewWriter(cmd.OutOrStdout())
			var p sumPrinter
			switch {
			case asJSON:
				p = &jsonSums{jsonKeys{out: out}}
			case tsv || escape:
				p = &tsvSums{out: out, escape: escape}
			default:
				p = &tableSums{out: out}
			}
			return printSums(cmd, args, out, p)
		},
	}
	cmd.Flags().BoolVar(&tsv, "tsv", false, "tab-separated columns under a header, the key as it came")
	cmd.Flags().BoolVar(&escape, "escape", false, `like --tsv, with \xHH for every byte of the key that is a
space, a backslash or not printable ASCII`)
	cmd.Flags().BoolVar(&asJSON, "json", false, "an array with an object for each key")
	return cmd
}

// printSums prints all keys. What is printed so far goes out whenever more
// input has to be waited for, so that one can type and watch.
func printSums(cmd *cobra.Command, args []string, out *bufio.Writer, p sumPrinter) error {
	p.begin()
	err := eachKey(cmd.Context(), args, flushingReader{cmd.InOrStdin(), out}, func(key []byte) error {
		if err := p.print(key); err != nil {
			return fmt.Errorf("writing the output: %w", err)
		}
		return nil
	})
	if err != nil {
		out.Flush() // what came before the error; a second error would add nothing
		return err
	}
	p.end()
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}

// flushingReader flushes out before it reads.
type flushingReader struct {
	in  io.Reader
	out *bufio.Writer
}

func (r flushingReader) Read(p []byte) (int, error) {
	if r.out.Flush() != nil {
		return 0, io.EOF // no use to read on; out keeps the error for its last Flush
	}
	return r.in.Read(p)
}

// eachKey calls do with each argument or, if there is none, with each line of
// in. The key is valid during the call. It holds no more than a line in memory,
// and stops at the first error.
func eachKey(ctx context.Context, args []string, in io.Reader, do func(key []byte) error) error {
	for _, arg := range args {
		if err := do([]byte(arg)); err != nil {
			return err
		}
	}
	if len(args) > 0 {
		return nil
	}
	line := 0
	s := bufio.NewScanner(in)
	s.Buffer(nil, maxKeyBytes+len("\n"))
	s.Split(splitLines)
	for s.Scan() {
		line++
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("interrupted: %w", err)
		}
		if err := do(s.Bytes()); err != nil {
			return err
		}
	}
	switch err := s.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("standard input, line %d: longer than %d bytes, the most that a key may have: give one key a line", line+1, maxKeyBytes)
	case err != nil:
		return fmt.Errorf("standard input, line %d: %w", line+1, err)
	}
	return nil
}

// splitLines is a bufio.SplitFunc like bufio.ScanLines, but keeps a carriage return at the end
// of a line.
func splitLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

// sumPrinter is a way to print keys and their hashes. The printers write to a
// bufio.Writer, which keeps its first error, so that they ask once a key.
type sumPrinter interface {
	begin()
	print(key []byte) error
	end()
}

// tableSums prints a block for each key, at most 80 columns wide.
type tableSums struct {
	out  *bufio.Writer
	some bool
}

func (t *tableSums) begin() {}
func (t *tableSums) end()   {}

func (t *tableSums) print(key []byte) error {
	if t.some {
		t.out.WriteByte('\n')
	}
	t.some = true
	unit := "bytes"
	if len(key) == 1 {
		unit = "byte"
	}
	fmt.Fprintf(t.out, "%s  %d %s\n", shortenKey(strconv.Quote(string(key))), len(key), unit)
	fmt.Fprintln(t.out, "  hash     decimal         hex  bit of 2^28")
	for _, h := range hashfamily.Hashes() {
		sum := h.Sum(key)
		if _, err := fmt.Fprintf(t.out, "  %-4s  %10d  0x%08x  %11d\n", h.Name, sum, sum, sum%bloom.ClassicBits); err != nil {
			return err
		}
	}
	return nil
}

// shortenKey takes the middle out of a text that is wider than 62 columns, which
// leaves room for the length beside it. It counts two columns for a character
// beyond ASCII, as East Asian ones take.
func shortenKey(s string) string {
	const room, dots = 62, "..."
	runes := []rune(s)
	if fitting(runes, room) == len(runes) {
		return s
	}
	head := string(runes[:fitting(runes, room-room/3-len(dots))])
	slices.Reverse(runes)
	tail := runes[:fitting(runes, room/3)]
	slices.Reverse(tail)
	return head + dots + string(tail)
}

// fitting returns how many of the runes fit into a number of columns.
func fitting(runes []rune, room int) int {
	for i, r := range runes {
		if room--; r >= utf8.RuneSelf {
			room--
		}
		if room < 0 {
			return i
		}
	}
	return len(runes)
}

// tsvSums prints a header and a line a key, columns separated by tabs.
type tsvSums struct {
	out    *bufio.Writer
	escape bool
}

func (t *tsvSums) begin() {
	t.out.WriteString("key")
	for _, h := range hashfamily.Hashes() {
		t.out.WriteString("\t" + h.Name)
	}
	t.out.WriteByte('\n')
}

func (t *tsvSums) end() {}

func (t *tsvSums) print(key []byte) error {
	if t.escape {
		t.out.Write(appendEscaped(nil, key))
	} else {
		t.out.Write(key)
	}
	for _, h := range hashfamily.Hashes() {
		t.out.WriteByte('\t')
		t.out.WriteString(strconv.FormatUint(uint64(h.Sum(key)), 10))
	}
	return t.out.WriteByte('\n')
}

// appendEscaped appends key with \xHH for each byte that is a space, a
// backslash or not printable ASCII, so that the key can be had back.
func appendEscaped(b, key []byte) []byte {
	for _, c := range key {
		if c <= ' ' || c >= 0x7F || c == '\\' {
			b = fmt.Appendf(b, `\x%02x`, c)
		} else {
			b = append(b, c)
		}
	}
	return b
}

// jsonSums prints an array with an object for each key. The hashes are numbers:
// 32 bits are exact in every JSON reader.
type jsonSums struct{ jsonKeys }

func (j *jsonSums) print(key []byte) error {
	object := struct {
		keyOf
		Hashes json.RawMessage `json:"hashes"`
	}{keyOf: newKeyOf(key)}
	// By hand, since a map would lose the order.
	for i, h := range hashfamily.Hashes() {
		object.Hashes = fmt.Appendf(object.Hashes, "%c%q:%d", "{,"[min(i, 1)], h.Name, h.Sum(key))
	}
	object.Hashes = append(object.Hashes, '}')
	return j.object(object)
}
