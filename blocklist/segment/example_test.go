package segment_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"spamgate/blocklist/segment"
)

func Example() {
	dir, err := os.MkdirTemp("", "segment")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "blocked.seg")
	key := &segment.Key{} // of a real one, all bytes are random

	b := segment.NewBuilder(segment.BuildOptions{Key: key, Dir: dir})
	defer b.Abort()
	a := b.Adder() // each goroutine has its own
	for _, e := range []segment.Entry{
		{Key: "spam.example", Line: 1, Reason: "bought addresses"},
		{Key: "@mail.example", Line: 2},
	} {
		if err := a.Add(e); err != nil {
			log.Fatal(err)
		}
	}
	if _, err := b.Finish(context.Background(), path, segment.Header{}); err != nil {
		log.Fatal(err)
	}

	file, err := os.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	s, err := segment.Map(file, path, key)
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"spam.example", "ham.example"} {
		r, found, err := s.Lookup(key.Hash([]byte(name)), []byte(name))
		fmt.Println(name, found, r.Line, r.Reason, err)
	}
	// Output:
	// spam.example true 1 bought addresses <nil>
	// ham.example false 0  <nil>
}
