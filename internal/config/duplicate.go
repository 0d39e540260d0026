package config

import (
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// duplicateFault explains a key or table that the file has twice, and says where
// the first one is. It reports whether that is the fault.
func duplicateFault(src []byte, fault *Error) bool {
	if !strings.Contains(fault.What, "already") {
		return false
	}
	ix := index(src)
	path, ok := ix.again[unstable.Position{Line: fault.Line, Column: fault.Column}]
	if !ok {
		return false
	}
	first := ix.at[path]
	name := display(path)
	fault.Key = name
	array := name == "list" || name == "listener"
	line := strings.TrimSpace(lineOf(src, fault.Line))
	switch {
	case !strings.HasPrefix(line, "["):
		fault.What = fmt.Sprintf("is set twice, the first time at line %d", first.Line)
		fault.Hint = "remove one of the two lines"
	case array:
		fault.What = fmt.Sprintf("already begins at line %d, but one of the two has single brackets", first.Line)
		fault.Hint = fmt.Sprintf("write [[%s]] with two brackets, once for each", name)
	case strings.HasPrefix(line, "[["):
		fault.What = fmt.Sprintf("already begins at line %d; there can be only one", first.Line)
		fault.Hint = fmt.Sprintf("move the keys below the first [%s], and remove this line", name)
	case !strings.HasPrefix(strings.TrimSpace(lineOf(src, first.Line)), "["):
		fault.What = fmt.Sprintf("[%s] cannot follow %s at line %d", name, strings.TrimSpace(beforeEqual(lineOf(src, first.Line))), first.Line)
		fault.Hint = fmt.Sprintf("move that key below [%s], without %q", name, name+".")
	default:
		fault.What = fmt.Sprintf("[%s] appears twice, the first time at line %d", name, first.Line)
		fault.Hint = fmt.Sprintf("move the keys below the first [%s], and remove this line", name)
	}
	return true
}
