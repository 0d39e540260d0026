package setup

import (
	"bytes"
	"strings"
	"testing"

	"spamgate/internal/term"
)

// TestFetchBar wants a bar that moves on, and says of what.
func TestFetchBar(t *testing.T) {
	var out bytes.Buffer
	b := &fetchBar{bar: term.NewLine(&out, 80), total: 2, part: map[string]float64{}}
	b.show("ads", 1<<20, 2<<20)
	b.show("other", 4<<20, -1)
	if sum := b.part["ads"] + b.part["other"]; sum != 1 {
		t.Errorf("parts %v", b.part)
	}
	b.clear()
	if !strings.Contains(out.String(), "ads, 1.0 MiB") {
		t.Errorf("%q", out.String())
	}
}
