package partial

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
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
		"dot-stuffed":    sum("a@example.com", header, "text\r\n..dot\r\n", true),
		"no end of line": sum("a@example.com", header, "text\r\n.dot", false),
	} {
		if same != first {
			t.Errorf("%s: another message", name)
		}
	}
	seen := map[Sum]string{first: "the first"}
	for name, other := range map[string]Sum{
		"another order":         sum("a@example.com", "Date: today\r\nSubject: x\r\nMessage-ID: <1@example.com>\r\n\r\n", "text\r\n.dot\r\n", false),
		"a space in the value":  sum("a@example.com", "Message-ID: <1@example.com>\r\nDate:  today\r\nSubject: x\r\n\r\n", "text\r\n.dot\r\n", false),
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

// TestSumOfFields wants each field of a message to count, also one that nobody knows, except
// the trace fields: a retry may have others, wherever they are.
func TestSumOfFields(t *testing.T) {
	fields := []string{
		"Message-ID: <1@example.com>\r\n", "Date: today\r\n", "Subject: x\r\n", "From: a@example.com\r\n", "To: b@example.net\r\n",
		"Content-Type: text/plain;\r\n charset=utf-8\r\n", "Content-Transfer-Encoding: 8bit\r\n", "Content-Disposition: inline\r\n",
		"MIME-Version: 1.0\r\n", "Reply-To: a@example.com\r\n", "Sender: a@example.com\r\n", "Cc: c@example.net\r\n", "Bcc: d@example.net\r\n",
		"In-Reply-To: <0@example.com>\r\n", "References: <0@example.com>\r\n <00@example.com>\r\n", "Resent-From: a@example.com\r\n",
		"Resent-Message-ID: <2@example.com>\r\n", "List-Id: <l.example.com>\r\n", "Auto-Submitted: no\r\n", "X-Seen: 1\r\n", "Unheard-Of: 1\r\n",
		"no field\r\n", "Received-By: x\r\n", "X-ARC-Seal: x\r\n",
	}
	trace := []string{
		"Received: from x\r\n\tby y\r\n", "received : x\r\n", "RETURN-PATH: <a@example.com>\r\n", "Received-SPF: pass\r\n", "X-Received: by x\r\n",
		"Authentication-Results: y;\r\n spf=pass\r\n", "Delivered-To: b@example.net\r\n", "DKIM-Signature: v=1; t=1\r\n b=x\r\n",
		"ARC-Seal: i=1\r\n", "ARC-Message-Signature: i=1\r\n", "ARC-Authentication-Results: i=1\r\n",
	}
	sum := func(fields ...string) Sum {
		d := NewDigest("a@example.com", []byte(strings.Join(fields, "")+"\r\n"), false)
		d.Write([]byte("text\r\n"))
		return d.Sum()
	}
	first := sum(fields...)
	for _, f := range trace {
		for _, i := range []int{0, 6, len(fields)} {
			if sum(slices.Insert(slices.Clone(fields), i, f, f)...) != first {
				t.Errorf("with %q as field %d it is another message", f, i)
			}
		}
	}
	seen := map[Sum]string{first: "the first"}
	for i, f := range fields {
		pos := len(f) - len("x\r\n")
		other := f[:pos] + "z" + f[pos+1:]
		for what, changed := range map[string][]string{
			"without":  slices.Delete(slices.Clone(fields), i, i+1),
			"twice":    slices.Insert(slices.Clone(fields), i, f),
			"changed":  slices.Replace(slices.Clone(fields), i, i+1, other),
			"extended": slices.Replace(slices.Clone(fields), i, i+1, f+" more\r\n"),
		} {
			s := sum(changed...)
			if twin := seen[s]; twin != "" {
				t.Errorf("%q %s and %s are one message", f, what, twin)
			}
			seen[s] = fmt.Sprintf("%q %s", f, what)
		}
	}
}

// TestSumWithoutBody wants a message of a header alone to have one Sum, whether DATA ends its
// last line or a chunk does not.
func TestSumWithoutBody(t *testing.T) {
	data, chunk := NewDigest("", []byte("Subject: x\r\n"), true), NewDigest("", []byte("Subject: x"), false)
	if data.Sum() != chunk.Sum() {
		t.Error("two messages")
	}
}

// FuzzDigest wants the Sum not to depend on how a body is cut into pieces.
// TestPairs: a sender and a recipient are not another pair that reads alike in one word.
func TestPairs(t *testing.T) {
	if newPair("a@example.co", "mc@example.net") == newPair("a@example.com", "c@example.net") {
		t.Error("two pairs are one")
	}
}

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
