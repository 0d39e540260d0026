package judge_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"spamgate/blocklist/judge"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
)

// A Store of list files, and a Checker over it.
func Example() {
	dir, err := os.MkdirTemp("", "lists")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "blocked.txt")
	if err := os.WriteFile(path, []byte("spam.example  # bulk mail\n"), 0o600); err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	lists, err := store.Open(ctx, store.Config{
		Lists: []store.List{{Name: "blocked", Paths: []string{path}, Action: verdict.Reject}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer lists.Close()

	checker := judge.Checker{Store: lists}
	m := &verdict.Message{ReversePath: "offers@spam.example"}
	v, err := checker.Judge().Judge(ctx, m, verdict.Query{Stage: verdict.Envelope, Address: m.ReversePath})
	fmt.Println(v.Action, v.Match.Entry, v.Match.Line, err)
	// Output: reject spam.example 1 <nil>
}
