package listedit

import (
	"io"
	"strings"
	"testing"

	"spamgate/blocklist/listfile"
)

// The longest line that is written is one that a list reads, whatever stands
// around it.
func TestAddLongestLine(t *testing.T) {
	for name, list := range map[string]string{
		"LF": "a.example\n", "CRLF": "a.example\r\n", "byte order mark": byteOrderMark + "b.example\r\n", "no last end": "a.example",
	} {
		n := listfile.Line{Text: "b.example"}
		n.Reason = strings.Repeat("r", listfile.MaxLine-len("b.example  # "))
		got, _ := add(t, list, listfile.Options{}, n)
		var reason string
		for e, err := range listfile.NewReader(strings.NewReader(got), listfile.Options{Format: listfile.Plain}).All() {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if e.Key == "b.example" {
				reason = e.Reason
			}
		}
		if reason != n.Reason {
			t.Errorf("%s: a reason of %d bytes, want %d", name, len(reason), len(n.Reason))
		}
		n.Reason += "r"
		if _, err := Add(strings.NewReader(list), io.Discard, listfile.Options{}, []listfile.Line{n}); err == nil || !strings.Contains(err.Error(), "1 bytes more than the 4096") {
			t.Errorf("%s: a byte more: %v", name, err)
		}
	}
}

// A note that stays may leave no room for a new reason.
func TestAddNoRoomBesideNote(t *testing.T) {
	list := "# one\nb.example  # r ## " + strings.Repeat("n", 3000) + "\n"
	n := listfile.Line{Text: "b.example", Reason: strings.Repeat("r", 2000)}
	_, err := Add(strings.NewReader(list), io.Discard, listfile.Options{}, []listfile.Line{n})
	if err == nil || !strings.Contains(err.Error(), `line 2: "b.example": with reason and note its line has `) {
		t.Errorf("%v", err)
	}
}
