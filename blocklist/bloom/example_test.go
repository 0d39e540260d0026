package bloom_test

import (
	"fmt"

	"spamgate/blocklist/bloom"
	"spamgate/hashfamily"
)

func Example() {
	family, err := hashfamily.NewClassic(bloom.ClassicBits)
	if err != nil {
		fmt.Println(err)
		return
	}
	filter, err := bloom.New(family)
	if err != nil {
		fmt.Println(err)
		return
	}
	filter.Add([]byte("spam@example.com"))
	filter.Add([]byte("@offers.example"))
	fmt.Println(filter.MayContain([]byte("spam@example.com")))
	fmt.Println(filter.MayContain([]byte("ham@example.com")))
	fmt.Println(filter.SetBits(), "bits set")
	// Output:
	// true
	// false
	// 20 bits set
}

func ExampleCapacity() {
	n := bloom.Capacity(bloom.ClassicBits, 11)
	fmt.Printf("%.1f million entries, then one lookup in %.0f is a false positive\n", n/1e6, 1/bloom.FPR(bloom.ClassicBits, 11, n))
	// Output: 16.9 million entries, then one lookup in 2048 is a false positive
}
