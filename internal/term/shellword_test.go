package term

import (
	"os/exec"
	"testing"
)

func TestShellWord(t *testing.T) {
	for text, want := range map[string]string{
		"spam.example":          "spam.example",
		"user+tag@spam.example": "user+tag@spam.example",
		"lists/blocked-2.txt":   "lists/blocked-2.txt",
		"":                      "''",
		"<>":                    "'<>'",
		"*.spam.example":        "'*.spam.example'",
		"it's@spam.example":     `'it'\''s@spam.example'`,
		"~root@spam.example":    "'~root@spam.example'",
	} {
		if got := ShellWord(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// Whatever a list holds, a shell takes it for one word and does nothing else.
func TestShellWordInShell(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell:", err)
	}
	for _, text := range []string{
		"x`id`@spam.example", "a|b@spam.example", "a{b,c}@spam.example", "$HOME@spam.example", "a?b@spam.example", "!a@spam.example",
		"a^b@spam.example", "a b", "'", `"\`, "#a@spam.example", "ü@spam.example", "a\nb", "~@spam.example", "a;b", "a&b", "%s", "(a)",
	} {
		got, err := exec.Command(shell, "-c", "printf %s "+ShellWord(text)).Output()
		if err != nil || string(got) != text {
			t.Errorf("%q: a shell reads %s as %q, %v", text, ShellWord(text), got, err)
		}
	}
}
