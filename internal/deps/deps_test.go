package deps

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestModules compares the modules that each library brings with modules.txt.
func TestModules(t *testing.T) {
	text, err := os.ReadFile("modules.txt")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{} // "library module"
	libraries := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "#" {
			continue
		}
		if len(f) < 3 {
			t.Errorf("%q does not say what the module is for", line)
			continue
		}
		libraries[f[0]] = true
		listed[f[0]+" "+f[1]] = true
	}
	for library := range libraries {
		for module := range modules(t, library) {
			if name := library + " " + module; !listed[name] {
				t.Errorf("%s brings %s: do without it, or add it to modules.txt with what it is for", library, module)
			} else {
				delete(listed, name)
			}
		}
	}
	for name := range listed {
		t.Errorf("%q is not needed any more: remove it from modules.txt", name)
	}
}

// TestGateAlone wants a gate without the hash laboratory: what draws pictures and PDFs has
// nothing to do at port 25.
func TestGateAlone(t *testing.T) {
	for _, p := range goList(t, "-deps", "spamgate/cmd/spamgate") {
		for _, lab := range []string{"spamgate/internal/hashlab", "spamgate/internal/hashattack", "spamgate/internal/chart", "spamgate/internal/disposable", "gonum.org/"} {
			if strings.HasPrefix(p, lab) {
				t.Errorf("spamgate links %s, which belongs to hashlab", p)
			}
		}
	}
}

// modules returns the modules that the packages of a library import, directly and
// indirectly. Packages that help tests are not counted: their names end in "test".
func modules(t *testing.T, library string) map[string]bool {
	t.Helper()
	packages := goList(t, "spamgate/"+library+"/...")
	args := []string{"-deps", "-f", "{{with .Module}}{{.Path}}{{end}}"}
	for _, p := range packages {
		if !strings.HasSuffix(p, "test") {
			args = append(args, p)
		}
	}
	found := map[string]bool{}
	for _, m := range goList(t, args...) {
		found[m] = true
	}
	delete(found, "spamgate")
	return found
}

// goList returns the fields of what "go list" prints.
func goList(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", cmd, err)
	}
	return strings.Fields(string(out))
}
