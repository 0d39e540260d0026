package term

import "strings"

// ShellWord is a text as a shell takes it for one word. What is proposed to be
// typed may come from a list, and so from anybody.
func ShellWord(s string) string {
	if s != "" && !strings.ContainsFunc(s, notPlainInShell) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// notPlainInShell reports a character that means something to a shell, or may.
func notPlainInShell(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("@%+=:,./_-", r)
}
