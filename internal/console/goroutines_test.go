package console

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"spamgate/internal/admin"
)

// guarded are the files that begin goroutines of which a panic would end the gate: why it does not.
var guarded = map[string]string{
	"console/work.go":       "recovers",
	"decisions/recorder.go": "the writer, which recovers in guarded",
	"joined/joined.go":      "hands the panic to who waits",
	"listedit/lock.go":      "one system call",
	"listfiles/open.go":     "only commands read terminals and pipes",
}

// TestGoroutines wants every goroutine that the console begins, by itself or by what it calls, in a
// file that is known to keep panics from ending the gate: net/http does that for handlers only.
func TestGoroutines(t *testing.T) {
	found := map[string]bool{}
	for _, dir := range []string{
		"accounts", "atomicfile", "check", "console", "decisions", "fleetsearch", "joined", "listcompare", "listedit", "listfiles", "mailwhy", "managed", "report", "sqlite",
	} {
		err := filepath.WalkDir(filepath.Join("..", dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err == nil && beginsGoroutines(file) {
				found[strings.TrimPrefix(filepath.ToSlash(path), "../")] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for path := range found {
		if guarded[path] == "" {
			t.Errorf("%s begins a goroutine: a panic there ends the gate, and with it the mail; use package joined", path)
		}
	}
	for path := range guarded {
		if !found[path] {
			t.Errorf("%s begins none any more", path)
		}
	}
}

// beginsGoroutines reports whether a file has a go statement or a sync.WaitGroup.
func beginsGoroutines(file *ast.File) (begins bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			begins = true
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "sync" && n.Sel.Name == "WaitGroup" {
				begins = true
			}
		}
		return !begins
	})
	return begins
}

// TestHealthFault has the question for the gate's health panic, in a goroutine that nobody waits
// for: pages and API say that they do not know it, until it is answered.
func TestHealthFault(t *testing.T) {
	faulty := true
	h := cached[admin.Health]{log: slog.New(slog.DiscardHandler), ask: func(context.Context) admin.Health {
		if faulty {
			panic("fault")
		}
		return admin.Health{Healthy: true, Time: time.Now()}
	}}
	_, err := h.wait(context.Background(), time.Now())
	var f failure
	if !errors.As(err, &f) || f.status != http.StatusServiceUnavailable {
		t.Errorf("%v", err)
	}
	faulty = false
	if health, err := h.wait(context.Background(), time.Now()); err != nil || !health.Healthy {
		t.Errorf("%+v, %v", health, err)
	}
}
