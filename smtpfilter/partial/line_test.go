package partial

import (
	"bytes"
	"testing"
)

// FuzzLine parses any line. A valid one must be written again unchanged.
func FuzzLine(f *testing.F) {
	f.Add(bytes.TrimSuffix(appendLine(nil, newPair("a", "b"), has(sumOf(1)), 1_800_000_000), []byte("\n")))
	f.Add(bytes.TrimSuffix(appendLine(nil, pair{}, Entry{State: Refused, Words: 1}, -1), []byte("\n")))
	f.Add([]byte("delivered 0 00 00 0 00000000"))
	f.Fuzz(func(t *testing.T, line []byte) {
		p, e, since, ok := parseLine(line)
		if !ok {
			return
		}
		again := appendLine(nil, p, e, since)
		q, same, when, ok := parseLine(again[:len(again)-1])
		if !ok || q != p || same != e || when != since {
			t.Errorf("%q became %q", line, again)
		}
	})
}

// BenchmarkDigest measures what the digest adds to a message for an LMTP server.
func BenchmarkDigest(b *testing.B) {
	line := []byte("A line of a message that is about as long as lines of messages are: 76.\r\n")
	body := append([]byte(".."), bytes.Repeat(line, 4096/len(line))...)
	for name, size := range map[string]int{"4KiB": 1, "1MiB": 256} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(size * len(body)))
			b.ReportAllocs()
			for b.Loop() {
				d := NewDigest("a@example.com", []byte("Message-ID: <1@example.com>\r\nDate: x\r\n\r\n"), true)
				for range size {
					d.Write(body)
				}
				d.Sum()
			}
		})
	}
}

// BenchmarkRecall measures a recipient without entries, the usual case.
func BenchmarkRecall(b *testing.B) {
	s := Open(storePath(b), Options{})
	defer s.Close()
	settle(b, s, sumOf(1), "b delivered")
	for b.Loop() {
		s.Recall("a@example.com", "c")
	}
}

// BenchmarkSettle measures a message that the server accepted for some of 50 recipients:
// one line for each, and one wait for the disk.
func BenchmarkSettle(b *testing.B) {
	s := Open(storePath(b), Options{})
	defer s.Close()
	outcomes := make([]string, 50)
	for i := range outcomes {
		outcomes[i] = string(rune('A'+i)) + " delivered"
	}
	n := 0
	for b.Loop() {
		n++
		settle(b, s, sumOf(n), outcomes...)
	}
}
