package render

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"spamgate/internal/hashlab"
)

// resultDigits is the precision of numbers in [Results], beyond that of all tables
// and pictures.
const resultDigits = 8

// Results writes the report to be kept: as [JSON] does, compressed by gzip, with
// numbers of eight digits, and with the avalanche matrices of the first corpus only,
// which are those of the pictures. [ReadResults] reads it.
func Results(w io.Writer, r *hashlab.Report) error {
	kept := *r
	kept.Avalanche = append([]hashlab.Avalanche{}, r.Avalanche...)
	for i := range kept.Avalanche {
		if a := &kept.Avalanche[i]; a.Corpus != kept.Avalanche[0].Corpus {
			a.Flips = [][]float64{}
		}
	}
	var text bytes.Buffer
	if err := JSON(&text, &kept); err != nil {
		return err
	}
	packed, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err == nil {
		_, err = packed.Write(shorten(text.Bytes()))
	}
	if err == nil {
		err = packed.Close()
	}
	if err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return nil
}

// shorten rounds the numbers with a fraction in a JSON text.
func shorten(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		end := i + 1
		switch c := text[i]; {
		case c == '"':
			for end < len(text) && (text[end] != '"' || escaped(text[i+1:end])) {
				end++
			}
			end = min(end+1, len(text))
		case c == '-' || c >= '0' && c <= '9':
			for end < len(text) && bytes.IndexByte([]byte("+-.0123456789eE"), text[end]) >= 0 {
				end++
			}
			if x, err := strconv.ParseFloat(string(text[i:end]), 64); err == nil && bytes.ContainsAny(text[i:end], ".eE") {
				out = strconv.AppendFloat(out, x, 'g', resultDigits, 64)
				i = end
				continue
			}
		}
		out = append(out, text[i:end]...)
		i = end
	}
	return out
}

// ReadResults reads a report that [Results] or [JSON] wrote.
func ReadResults(r io.Reader) (*hashlab.Report, error) {
	in := bufio.NewReader(r)
	var text io.Reader = in
	if magic, err := in.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		if text, err = gzip.NewReader(in); err != nil {
			return nil, fmt.Errorf("not results of this command: %w", err)
		}
	}
	d := json.NewDecoder(text)
	d.DisallowUnknownFields()
	report := new(hashlab.Report)
	if err := d.Decode(report); err != nil {
		return nil, fmt.Errorf("not results of this command: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("not results of this command: there is text after the end")
	}
	if err := report.Check(); err != nil {
		return nil, fmt.Errorf("not results of this command: %w", err)
	}
	return report, nil
}
