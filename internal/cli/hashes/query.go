package hashes

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"spamgate/blocklist/bloom"
	"spamgate/hashfamily"
	"spamgate/internal/cli"
	"spamgate/internal/term"
)

func newHashesQueryCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "query FILE [KEY...]",
		Short: "Ask a stored bitmap which keys it may contain",
		Long: `Ask a raw bitmap of the classic filter, as "spamgate hashes bitmap" writes it,
which keys it may contain. These are printed, one per line, as they came. A key
that is not printed was certainly never added. One that is printed was added, or
is a false positive: all bits that its eleven hashes set are set by others.

The file has 2^28 bits, 32 MiB. It does not say which keys it has, nor of which
hashes it is.

` + keysHelp + `

--json prints an object for each key, contained or not, with the hashes, their
bits and whether each is set. "key" is null if the key is not UTF-8; "key_hex"
always holds its bytes.

Exit codes: 0 at least one key may be contained; 1 certainly none; 2 an error.`,
		Example: `  spamgate hashes query bitmap.bin spam@example.com @example.net
  spamgate hashes query bitmap.bin < domains.txt
  spamgate hashes query --json bitmap.bin example.com | jq '.[0].probes'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name the file of the bitmap, which spamgate hashes bitmap --out FILE writes")
			}
			return nil
		},
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := openBitmap(args[0])
			if err != nil {
				return err
			}
			out := bufio.NewWriter(cmd.OutOrStdout())
			q := &query{filter: filter, jsonKeys: jsonKeys{out: out}, asJSON: asJSON}
			if err := printSums(cmd, args[1:], out, q); err != nil {
				return err
			}
			if !q.some {
				return cli.ErrNo
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "an array with an object for each key")
	return cmd
}

// openBitmap reads the bitmap of a classic filter.
func openBitmap(path string) (*bloom.Filter, error) {
	family, err := hashfamily.NewClassic(bloom.ClassicBits)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	const want = bloom.ClassicBits / 8
	switch {
	case info.IsDir():
		return nil, fmt.Errorf("%s is a directory: name the file of a bitmap", term.ShortPath(path))
	case info.Mode()&os.ModeDevice != 0:
		return nil, fmt.Errorf("%s is a device: name the file of a bitmap", term.ShortPath(path))
	case info.Mode().IsRegular() && info.Size() != want:
		return nil, fmt.Errorf("%s has %d bytes, and the bitmap of a classic filter %d: spamgate hashes bitmap --out FILE writes one", term.ShortPath(path), info.Size(), want)
	}
	filter, err := bloom.New(family)
	if err != nil {
		return nil, err
	}
	if _, err := filter.ReadFrom(file); err != nil {
		return nil, fmt.Errorf("%s: %w", term.ShortPath(path), err)
	}
	return filter, nil
}

// query prints which keys a filter may contain.
type query struct {
	filter *bloom.Filter
	asJSON bool
	some   bool // a key may be contained
	jsonKeys
}

func (q *query) begin() {
	if q.asJSON {
		q.jsonKeys.begin()
	}
}

func (q *query) end() {
	if q.asJSON {
		q.jsonKeys.end()
	}
}

func (q *query) print(key []byte) error {
	if q.asJSON {
		e := q.filter.Explain(key)
		q.some = q.some || e.Maybe
		return q.object(queriedKey{newKeyOf(key), e.Maybe, e.Probes})
	}
	if !q.filter.MayContain(key) {
		return nil
	}
	q.some = true
	q.out.Write(key)
	return q.out.WriteByte('\n')
}

// queriedKey is the answer for one key.
type queriedKey struct {
	keyOf
	MayContain bool          `json:"may_contain"`
	Probes     []bloom.Probe `json:"probes"`
}

// keyOf is a key in JSON.
type keyOf struct {
	Key    *string `json:"key"` // null if it is not UTF-8
	KeyHex string  `json:"key_hex"`
}

func newKeyOf(key []byte) keyOf {
	k := keyOf{KeyHex: hex.EncodeToString(key)}
	if utf8.Valid(key) {
		text := string(key)
		k.Key = &text
	}
	return k
}

// jsonKeys prints an array with an object for each key.
type jsonKeys struct {
	out  *bufio.Writer
	next bool // an object came before
}

func (j *jsonKeys) begin() { j.out.WriteByte('[') }
func (j *jsonKeys) end()   { j.out.WriteString("\n]\n") }

// object prints one element of the array.
func (j *jsonKeys) object(value any) error {
	text, err := oneLine(value)
	if err != nil {
		return err
	}
	if j.next {
		j.out.WriteByte(',')
	}
	j.next = true
	j.out.WriteByte('\n')
	_, err = j.out.Write(text)
	return err
}

// oneLine returns a value as JSON without a line end.
func oneLine(value any) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // "<>" is a key, and this is not a web page
	err := e.Encode(value)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}
