package bloom_test

import (
	"bytes"
	"context"
	"fmt"

	"spamgate/blocklist/bloom"
	"spamgate/hashfamily"
)

// Two lists' parts are made once each, and united whenever one of them changes.
func ExampleSharded_Unite() {
	family, err := hashfamily.NewClassic(1 << 20)
	if err != nil {
		fmt.Println(err)
		return
	}
	filter, err := bloom.NewSharded(family, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, key := range []string{"spam.example", "offers.example"} {
		// With one bitmap the hash of the key, here 0, is not looked at.
		scan := func(_, _ uint64, yield func(hash uint64, key []byte) bool) error {
			yield(0, []byte(key))
			return nil
		}
		var stored bytes.Buffer // as a rule a file
		part := bloom.ListBits{ID: [32]byte{byte(i)}}
		if err := bloom.WriteListBits(context.Background(), &stored, part, family, 1, 1, scan); err != nil {
			fmt.Println(err)
			return
		}
		if err := filter.Unite(&stored, part); err != nil {
			fmt.Println(err)
			return
		}
	}
	for _, key := range []string{"spam.example", "offers.example", "ham.example"} {
		fmt.Println(key, filter.MayContain(0, []byte(key)))
	}
	// Output:
	// spam.example true
	// offers.example true
	// ham.example false
}
