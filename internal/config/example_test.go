package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"spamgate/internal/config"
)

// Load reports every fault of a file, with its place and a remedy.
func ExampleLoad() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "config.toml")
	text := `[listen]
adr = ":25"
[log]
level = "loud"
[[list]]
name = "blocked"
path = "lists/blocked.txt"
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	_, err = config.Load(path)
	fmt.Println(strings.ReplaceAll(err.Error(), dir+"/", ""))
	// Output:
	// config.toml:2:1: listen.adr: unknown key; did you mean "addr"?
	// config.toml:4:1: log.level: "loud" is not known; write "debug", "info", "warn" or "error"
}
