package store_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
)

func Example() {
	dir, err := os.MkdirTemp("", "lists")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "blocked.txt")
	os.WriteFile(path, []byte("example.com  # sends what nobody asked for\n!news.example.com\n"), 0o644)

	ctx := context.Background()
	lists, err := store.Open(ctx, store.Config{
		Lists: []store.List{{Name: "blocked", Paths: []string{path}, Action: verdict.Reject}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer lists.Close()

	show := func(address string) {
		a, err := sender.Parse(address)
		if err != nil {
			log.Fatal(err)
		}
		d, err := lists.Set().Lookup(verdict.Envelope, a)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %s %q\n", a, d.Action, d.Match.Reason)
	}
	show("Offers@Mail.Example.COM")
	show("letter@news.example.com")
	show("friend@example.net")

	// A change goes live by itself; Rescan waits for it.
	os.WriteFile(path, []byte("example.net # changed hands\n"), 0o644)
	if err := lists.Rescan(ctx); err != nil {
		log.Fatal(err)
	}
	show("friend@example.net")
	// Output:
	// offers@mail.example.com: reject "sends what nobody asked for"
	// letter@news.example.com: accept ""
	// friend@example.net: accept ""
	// friend@example.net: reject "changed hands"
}
