package browser

import (
	"os"
	"path/filepath"
	"testing"

	"spamgate/internal/e2e/harness"
)

// axeFile is axe-core, which npm installs.
var axeFile string

// TestMain runs the tests where package harness expects them: beside the other end-to-end
// tests, in the program's module.
func TestMain(m *testing.M) {
	here, err := os.Getwd()
	if err == nil {
		axeFile = filepath.Join(here, "node_modules", "axe-core", "axe.min.js")
		err = os.Chdir(filepath.Join("..", "..", "internal", "e2e", "console"))
	}
	if err != nil {
		panic(err)
	}
	harness.Main(m)
}
