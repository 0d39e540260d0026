package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// The most that a struct type may have. One with more is several things, which nobody can keep
// in mind at once, and whose locks nobody can check.
const (
	mostFields  = 25 // an embedded one counts as one
	mostMethods = 40
)

// largeTypes are the types that have more, with the reason.
var largeTypes = map[string]string{
	"blocklist.ListStats":           "a row of facts about a list, without a lock",
	"blocklist/verdict.Decision":    "the fields of a line in the log, and of a row of the history",
	"blocklist/store.Store":         "the state machine of the lists, whose lock is one",
	"internal/accounts.Store":       "one file with one lock, a method an operation",
	"internal/admin.List":           "the fields of a list in JSON",
	"internal/check.session":        "the order of rules, which the session of a message decides",
	"internal/config.List":          "the keys of a [[lists]] table",
	"internal/config.document":      "the reader of the file, a method a kind of key",
	"internal/console.entryForm":    "the fields of a form",
	"internal/console.exchange":     "a request, a method a page",
	"internal/mailservers.Settings": "the variables of a template, a method each",
	"smtpfilter.session":            "a client's session, a method a step",
}

// TestTypes counts the fields and methods of each struct type.
func TestTypes(t *testing.T) {
	fields, methods := map[string]int{}, map[string]int{}
	for path, text := range goFiles(t) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		prefix := filepath.ToSlash(dir) + "."
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv != nil {
					methods[prefix+receiver(n.Recv.List[0].Type)]++
				}
				return false
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok {
					fields[prefix+n.Name.Name] = countFields(s)
				}
			}
			return true
		})
	}
	if fields["internal/gate.gate"] == 0 || methods["internal/gate.gate"] == 0 {
		t.Error("the gate has no fields or no methods: is this test still true?")
	}
	for name, n := range fields {
		large := n > mostFields || methods[name] > mostMethods
		reason, known := largeTypes[name]
		switch {
		case large && !known:
			t.Errorf("%s has %d fields and %d methods, and may have %d and %d: cut it by subject", name, n, methods[name], mostFields, mostMethods)
		case known && !large:
			t.Errorf("%s has %d fields and %d methods: take it out of largeTypes (%s)", name, n, methods[name], reason)
		}
	}
	for name := range largeTypes {
		if fields[name] == 0 {
			t.Errorf("largeTypes has %s, which is gone", name)
		}
	}
}

// receiver returns the name of a method's type.
func receiver(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr: // a generic type
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

func countFields(s *ast.StructType) (n int) {
	for _, f := range s.Fields.List {
		n += max(1, len(f.Names))
	}
	return n
}
