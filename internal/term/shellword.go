package term

import "strings"

// ShellWord quotes a text so that a shell takes it as one word. Commands that are suggested
// to the user may contain text from a list, which anybody may have written.
func ShellWord(s string) string {
	if s != "" && !strings.ContainsFunc(s, notPlainInShell) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// notPlainInShell reports whether a character may have a meaning for a shell.
func notPlainInShell(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("@%+=:,./_-", r)
}
