package blocklist_test

import (
	"context"
	"fmt"
	"log"

	"spamgate/blocklist"
	"spamgate/blocklist/segment"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// A Set of one list, made without files.
func Example() {
	keys := blocklist.ProcessKeys()
	b := segment.NewBuilder(segment.BuildOptions{Key: keys.Segment()})
	b.Adder().Add(segment.Entry{Key: "spam.example", Kind: uint8(sender.KindDomain), Line: 1, Reason: "bulk mail"})
	index, err := b.Finish(context.Background(), "", segment.Header{})
	if err != nil {
		log.Fatal(err)
	}
	set, err := blocklist.NewSet(context.Background(), blocklist.SetConfig{Keys: keys, Lists: []blocklist.SetList{{
		List:  blocklist.List{Name: "blocked", Action: verdict.Reject},
		Index: blocklist.NewIndex(index, []string{"blocked.txt"}, nil),
	}}})
	if err != nil {
		log.Fatal(err)
	}
	for _, text := range []string{"Offers@Mail.Spam.EXAMPLE", "friend@clean.example"} {
		a, err := sender.Parse(text)
		if err != nil {
			log.Fatal(err)
		}
		v, err := set.Lookup(verdict.Envelope, a)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(a, v.Action, v.Match.Reason)
	}
	// Output:
	// offers@mail.spam.example reject bulk mail
	// friend@clean.example accept
}
