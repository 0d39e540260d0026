package partial

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
)

// A line of the file has the state's name and five hexadecimal numbers:
//
//	STATE SECONDS PAIR SUM WORDS CRC
//
// CRC is the CRC-32 (IEEE) of the line up to the space before it. Of several lines for
// one pair and message the last one counts; "settled" removes the entry.

// maxLine is more than the length of any line.
const maxLine = 192

// appendLine appends the line of an entry.
func appendLine(b []byte, p pair, e Entry, since int64) []byte {
	start := len(b)
	b = fmt.Appendf(b, "%s %x %x %x %016x", e.State, since, p[:], e.Message[:], e.Words)
	return fmt.Appendf(b, " %08x\n", crc32.ChecksumIEEE(b[start:]))
}

// parseLine parses a line without its line end. Ok is false if the line is damaged.
func parseLine(line []byte) (p pair, e Entry, since int64, ok bool) {
	end := bytes.LastIndexByte(line, ' ')
	if end < 0 {
		return p, e, 0, false
	}
	sum, err := strconv.ParseUint(string(line[end+1:]), 16, 32)
	if err != nil || uint32(sum) != crc32.ChecksumIEEE(line[:end]) {
		return p, e, 0, false
	}
	f := bytes.Split(line[:end], []byte(" "))
	if len(f) != 5 || len(f[2]) != 2*len(p) || len(f[3]) != 2*len(e.Message) {
		return p, e, 0, false
	}
	state := slices.Index(stateNames[:], string(f[0]))
	since, errSince := strconv.ParseInt(string(f[1]), 16, 64)
	_, errPair := hex.Decode(p[:], f[2])
	_, errMessage := hex.Decode(e.Message[:], f[3])
	words, errWords := strconv.ParseUint(string(f[4]), 16, 64)
	if state < 0 || errSince != nil || errPair != nil || errMessage != nil || errWords != nil {
		return p, e, 0, false
	}
	e.State, e.Words = State(state), words
	return p, e, since, true
}
