package console

import "testing"

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "",
		"<b>Müller & Söhne</b>": "<b>Müller & Söhne</b>",
		"a\u202ecod.exe":        `a\u202ecod.exe`,
		"a\x00\x1b[31m\u2028":   `a\u0000\u001b[31m\u2028`,
		"a\xff":                 "a\ufffd",
		"\U000e0001":            `\U000e0001`,
	} {
		if got := visible(text); got != want {
			t.Errorf("visible(%q) = %q, want %q", text, got, want)
		}
	}
	if got := visibleLines("a\nb\rc"); got != "a\nb\\u000dc" {
		t.Errorf("visibleLines: %q", got)
	}
}
