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

func ExampleCounting() {
	family, err := hashfamily.NewClassic(1 << 20)
	if err != nil {
		fmt.Println(err)
		return
	}
	filter, err := bloom.NewCounting(family, bloom.DefaultCounterBits)
	if err != nil {
		fmt.Println(err)
		return
	}
	filter.Add([]byte("spam@example.com"))
	filter.Add([]byte("@offers.example"))
	fmt.Println(filter.Remove([]byte("spam@example.com")), filter.MayContain([]byte("spam@example.com")))
	fmt.Println(filter.Remove([]byte("ham@example.com")), filter.MayContain([]byte("@offers.example")))
	// Output:
	// true false
	// false true
}

func ExampleSieve() {
	family, err := hashfamily.NewSeeded(1<<20, 10, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	sieve, err := bloom.NewSieve(family, 2, func(n float64) { fmt.Printf("made for 2 senders, saw about %.0f\n", n) })
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, sender := range []string{"a@example.com", "b@example.com", "a@example.com", "c@example.com"} {
		fmt.Println(sender, sieve.Push([]byte(sender)))
	}
	for sieve.Len() > 0 {
		sender, _ := sieve.Pop()
		fmt.Println("first seen:", string(sender))
	}
	// Output:
	// a@example.com true
	// b@example.com true
	// a@example.com false
	// made for 2 senders, saw about 3
	// c@example.com true
	// first seen: a@example.com
	// first seen: b@example.com
	// first seen: c@example.com
}

func ExampleNewPlan() {
	plan, err := bloom.NewPlan(bloom.PlanRequest{Entries: 1_000_000_000, FPR: 0.0001})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.2f GiB, %d hashes\n", float64(plan.MemoryBytes())/(1<<30), plan.Hashes)
	// Output: 2.23 GiB, 13 hashes
}
