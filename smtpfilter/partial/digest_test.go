package partial

import (
	"bytes"
	"testing"
)

// TestSum wants equal messages to have one Sum, and others another.
func TestSum(t *testing.T) {
	const header = "Message-ID: <1@example.com>\r\nDate: today\r\nSubject: x\r\n\r\n"
	sum := func(from, header, body string, stuffed bool) Sum {
		d := NewDigest(from, []byte(header), stuffed)
		d.Write([]byte(body))
		return d.Sum()
	}
	first := sum("a@example.com", header, "text\r\n.dot\r\n", false)
	for name, same := range map[string]Sum{
		"dot-stuffed":          sum("a@example.com", header, "text\r\n..dot\r\n", true),
		"no end of line":       sum("a@example.com", header, "text\r\n.dot", false),
		"trace fields":         sum("a@example.com", "Received: from x\r\n by y\r\nX-Seen: 1\r\n"+header, "text\r\n.dot\r\n", false),
		"another order":        sum("a@example.com", "Date: today\r\nSubject: x\r\nmessage-id : <1@example.com>\r\n\r\n", "text\r\n.dot\r\n", false),
		"a space in the value": sum("a@example.com", "Message-ID:<1@example.com>\r\nSubject:x\r\nDate:  today \r\n\r\n", "text\r\n.dot\r\n", false),
	} {
		if same != first {
			t.Errorf("%s: another message", name)
		}
	}
	seen := map[Sum]string{first: "the first"}
	for name, other := range map[string]Sum{
		"another sender":        sum("b@example.com", header, "text\r\n.dot\r\n", false),
		"the null sender":       sum("", header, "text\r\n.dot\r\n", false),
		"another Message-ID":    sum("a@example.com", "Message-ID: <2@example.com>\r\nDate: today\r\n\r\n", "text\r\n.dot\r\n", false),
		"two Message-IDs":       sum("a@example.com", "Message-ID: <2@example.com>\r\n"+header, "text\r\n.dot\r\n", false),
		"a folded Message-ID":   sum("a@example.com", "Message-ID: <1@example.com>\r\n <3>\r\nDate: today\r\n\r\n", "text\r\n.dot\r\n", false),
		"another Date":          sum("a@example.com", "Message-ID: <1@example.com>\r\nDate: later\r\n\r\n", "text\r\n.dot\r\n", false),
		"another Subject":       sum("a@example.com", "Message-ID: <1@example.com>\r\nDate: today\r\nSubject: y\r\n\r\n", "text\r\n.dot\r\n", false),
		"a From":                sum("a@example.com", "From: a@example.com\r\n"+header, "text\r\n.dot\r\n", false),
		"a To":                  sum("a@example.com", "To: a@example.com\r\n"+header, "text\r\n.dot\r\n", false),
		"empty Message-ID":      sum("a@example.com", "Message-ID:\r\nDate: today\r\nX-Report: 1\r\n\r\n", "text\r\n.dot\r\n", false),
		"blank, another field":  sum("a@example.com", "Message-ID:  \r\nDate: today\r\nX-Report: 2\r\n\r\n", "text\r\n.dot\r\n", false),
		"two empty Message-IDs": sum("a@example.com", "Message-ID:\r\nMessage-ID:\r\nDate: today\r\nX-Report: 1\r\n\r\n", "text\r\n.dot\r\n", false),
		"two empty, other":      sum("a@example.com", "Message-ID:\r\nMessage-ID:\r\nDate: today\r\nX-Report: 2\r\n\r\n", "text\r\n.dot\r\n", false),
		"no Date":               sum("a@example.com", "Message-ID: <1@example.com>\r\n\r\n", "text\r\n.dot\r\n", false),
		"no Message-ID":         sum("a@example.com", "Date: today\r\nSubject: x\r\n\r\n", "text\r\n.dot\r\n", false),
		"none, another Subject": sum("a@example.com", "Date: today\r\nSubject: y\r\n\r\n", "text\r\n.dot\r\n", false),
		"another body":          sum("a@example.com", header, "text\r\n.dots\r\n", false),
		"a line more":           sum("a@example.com", header, "text\r\n.dot\r\n\r\n", false),
		"no body":               sum("a@example.com", header, "", false),
		"stuffed dots raw":      sum("a@example.com", header, "text\r\n..dot\r\n", false),
	} {
		if twin := seen[other]; twin != "" {
			t.Errorf("%s and %s are one message", name, twin)
		}
		seen[other] = name
	}
}

// FuzzDigest wants the Sum not to depend on how a body is cut into pieces.
func FuzzDigest(f *testing.F) {
	f.Add([]byte("text\r\n..dot\r\n.\r\n"), 3)
	f.Add([]byte("..\r\n..\r\n"), 1)
	f.Fuzz(func(t *testing.T, body []byte, size int) {
		size = max(1, size%64)
		whole, pieces, plain := NewDigest("", nil, true), NewDigest("", nil, true), NewDigest("", nil, false)
		whole.Write(body)
		for rest := body; len(rest) > 0; {
			n := min(size, len(rest))
			pieces.Write(rest[:n])
			rest = rest[n:]
		}
		unstuffed := bytes.TrimPrefix(body, []byte("."))
		plain.Write(bytes.ReplaceAll(unstuffed, []byte("\n."), []byte("\n")))
		if whole.Sum() != pieces.Sum() {
			t.Errorf("%q in pieces of %d has another Sum", body, size)
		}
		if len(unstuffed) > 0 && whole.Sum() != plain.Sum() {
			t.Errorf("%q has another Sum without dot-stuffing", body)
		}
	})
}
