// Systems type-checks the repository and its tests for other systems, from source. go vet would compile
// all that they import first, SQLite for each system; its own checks are the same on each, but for
// those of shifts.
//
//	go -C tools run ./systems linux/386 darwin/arm64
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/passes/shift"
	"golang.org/x/tools/go/packages"
)

func main() {
	root, err := filepath.Abs("..")
	for _, system := range os.Args[1:] {
		n, problem := check(root, system)
		fmt.Printf("%s: %d packages, with those of tests\n", system, n)
		err = errors.Join(err, problem)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// check checks the packages in a directory for a system such as linux/386, and returns their number.
func check(root, system string) (int, error) {
	goos, goarch, _ := strings.Cut(system, "/")
	loaded, err := packages.Load(&packages.Config{
		Mode:  packages.LoadAllSyntax | packages.NeedModule,
		Dir:   root,
		Env:   append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch),
		Tests: true,
		ParseFile: func(fset *token.FileSet, path string, src []byte) (*ast.File, error) {
			file, err := parser.ParseFile(fset, path, src, parser.SkipObjectResolution)
			if file != nil && filepath.Ext(path) == ".go" && !strings.HasPrefix(path, root+"/") {
				removeBodies(file) // who imports it needs only the types
			}
			return file, err
		},
	}, "./...")
	if err != nil {
		return 0, fmt.Errorf("%s: %w", system, err)
	}
	packages.Visit(loaded, nil, func(p *packages.Package) {
		if p.Module == nil || !p.Module.Main { // has no bodies, which is an error
			p.Errors, p.TypeErrors = nil, nil
		}
		p.IllTyped = len(p.Errors) > 0
		for _, problem := range p.Errors {
			err = errors.Join(err, fmt.Errorf("%s: %w", system, problem))
		}
	})
	if err != nil {
		return len(loaded), err
	}
	graph, err := checker.Analyze([]*analysis.Analyzer{shift.Analyzer}, loaded, nil)
	if err != nil {
		return len(loaded), err
	}
	for _, action := range graph.Roots {
		err = errors.Join(err, action.Err)
		for _, d := range action.Diagnostics {
			err = errors.Join(err, fmt.Errorf("%s: %s: %s", system, action.Package.Fset.Position(d.Pos), d.Message))
		}
	}
	return len(loaded), err
}

// removeBodies removes the bodies of a file's functions.
func removeBodies(file *ast.File) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			f.Body = nil
		}
	}
}
