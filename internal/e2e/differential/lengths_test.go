package differential

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// lengths are those at which a server folds, splits or cuts lines and fields.
var lengths = []int{256, 998, 2048, 4096, 8192, 16384, 32768, 65536, 102400}

// A split is a field's value that means something else if a server folds or cuts it in a place.
type split struct {
	name          string
	begin, before string // of the value, with padding between them
	after         string // the place
}

var splits = []split{
	{"address", "", "x", "joe@plain.example"},
	{"quoted pair", `"`, `\`, `" <joe@plain.example>, " <ok@ok.example>`},
	{"quoted string", `"`, "", ` <joe@plain.example>, " <ok@ok.example>`},
	{"encoded-word", "", " =?utf-8?q?joe=40plain", ".example?= <ok@ok.example>"},
	{"bracket", "", "joe@plain.example", " <ok@ok.example>"},
	{"comment", "(", "", ") ok@ok.example, (joe) ann@plain.example"},
}

// text returns a field whose place is at a length, in one line or in lines of 500 bytes.
func (s split) text(field string, pos int, folded bool) string {
	head := field + ": " + s.begin
	padding := strings.Repeat("x", pos-len(head)-len(s.before))
	if folded {
		var lines []string
		for rest := padding; rest != ""; rest = rest[min(500, len(rest)):] {
			lines = append(lines, rest[:min(500, len(rest))])
		}
		for i := 1; i < len(lines); i++ { // the padding keeps its length
			lines[i] = "\r\n " + lines[i][min(3, len(lines[i])):]
		}
		padding = strings.Join(lines, "")
	}
	return head + padding + s.before + s.after + "\r\n"
}

// TestFieldsOfEachLength sends fields that are folded or cut in a place that matters through
// the gate and each documented server. The readers see the same addresses in what arrives as in
// what was sent, or the gate refuses the field: a checked one in a line of more than 998 bytes,
// or of more than 16,384 bytes. Fields that are not checked may be long.
func TestFieldsOfEachLength(t *testing.T) {
	t.Parallel()
	var messages []string
	var names []string
	var tooLong []bool
	for _, length := range lengths {
		for _, pos := range []int{length - 1, length, length + 1} {
			if pos != length && length != 998 && harness.IfFull(0, 1) == 0 {
				continue
			}
			for i, s := range splits {
				add := func(name, text, rest string) {
					messages = append(messages, text+rest+"\r\n")
					names = append(names, fmt.Sprintf("%s, %s at %d", name, s.name, pos))
					longest := slices.MaxFunc(strings.Split(text, "\r\n"), func(a, b string) int { return len(a) - len(b) })
					tooLong = append(tooLong, rest == "" && (len(longest) > 998 || len(text) > 16384+len("\r\n")))
				}
				if harness.IfFull(0, 1) == 1 || length < 2048 || i%3 == length/2048%3 {
					add("a line", s.text("From", pos, false), "")
					add("a line that ends", s.text("From", pos-len(s.after), false), "")
					add("folded", s.text("From", pos, true), "")
					add("folded and ending", s.text("From", pos-len(s.after), true), "")
				}
				if harness.IfFull(0, 1) == 1 || i%3 == 0 {
					add("not checked", s.text([]string{"To", "References", "X-Spam"}[i%3], pos, false), "From: Ann <ok@ok.example>\r\n")
				}
			}
		}
	}
	for _, name := range []string{"postfix", "dovecot", "exim", "opensmtpd", "sendmail", "sendmail-milter"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, r := startSystem(t, name), startReaders(t)
			replies, arrived := s.deliver(t, messages)
			var sent, got []string
			var which []int
			for i, reply := range replies {
				ours := strings.HasPrefix(reply, "554 5.6.0")
				switch {
				case tooLong[i] && reply[0] != '5': // a server that asks the gate may refuse it first
					t.Errorf("%s: %.100q, want a refusal", names[i], reply)
				case !tooLong[i] && ours:
					t.Errorf("%s: %.100q", names[i], reply)
				case reply[0] == '2' && arrived[i] == "":
					t.Errorf("%s did not arrive", names[i])
				case reply[0] == '2' && strings.HasPrefix(name, "sendmail") && !strings.HasPrefix(names[i], "not checked"):
				case reply[0] == '2':
					which = append(which, i)
					sent, got = append(sent, messages[i]+body(i)), append(got, arrived[i])
				case reply[0] == '4':
					t.Errorf("%s: %.100q", names[i], reply)
				}
			}
			if len(which) < 10 {
				t.Errorf("%d of %d messages arrived: the test does not test much", len(which), len(messages))
			}
			before, after := r.read(sent), r.read(got)
			for i, n := range which {
				for _, reader := range slices.Sorted(maps.Keys(before[i])) {
					if a, b := distinct(before[i][reader]), distinct(after[i][reader]); !slices.Equal(a, b) {
						t.Errorf("%s: %s sees %.200q, and saw %.200q before", names[n], reader, b, a)
					}
				}
			}
			t.Logf("%d of %d messages arrived", len(which), len(messages))
		})
	}
}

// distinct returns the addresses in order, each once.
func distinct(addresses []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(addresses)))
}
