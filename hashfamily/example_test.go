package hashfamily_test

import (
	"fmt"

	"spamgate/hashfamily"
)

func ExampleHashes() {
	for _, h := range hashfamily.Hashes() {
		fmt.Println(h.Name, h.Sum([]byte("example.com")))
	}
	// Output:
	// RS 1457297803
	// JS 2050872164
	// PJW 122462749
	// ELF 122462749
	// BKDR 1366942141
	// SDBM 1835615613
	// DJB 3653638078
	// DEK 3663586297
	// BP 1440282605
	// FNV 2150121151
	// AP 3546170937
}

func ExampleParseSpec() {
	spec, err := hashfamily.ParseSpec("classic:RS,JS,AP")
	if err != nil {
		fmt.Println(err)
		return
	}
	family, err := spec.New(hashfamily.Params{M: 1 << 28})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(family.Name(), "has", family.K(), "functions over", family.M(), "bits")
	fmt.Println(family.AppendIndices(nil, []byte("spam@example.com")))

	_, err = hashfamily.ParseSpec("classic:RS,MD5")
	fmt.Println(err)
	// Output:
	// classic:RS,JS,AP has 3 functions over 268435456 bits
	// [220577362 82834159 131059132]
	// hash family classic: unknown hash "MD5": choose from RS,JS,PJW,ELF,BKDR,SDBM,DJB,DEK,BP,FNV,AP
}

// A bound on the bits, and a number of hashes where the family leaves it free.
func ExampleSpec_New() {
	for _, name := range []string{"classic9", "weighted:5,7,11", "digest", "double", "seeded:42"} {
		spec, err := hashfamily.ParseSpec(name)
		if err != nil {
			fmt.Println(err)
			return
		}
		m, err := spec.FitM(1_000_000)
		if err != nil {
			fmt.Println(err)
			return
		}
		p := hashfamily.Params{M: m}
		if spec.K() == 0 {
			p.K = 5
		}
		if spec.Keyed() {
			p.Key = make([]byte, hashfamily.KeySize) // random and secret in earnest
		}
		family, err := spec.New(p)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(family.Name(), family.K(), family.M())
	}
	// Output:
	// classic9 9 1000000
	// weighted:5,7,11 3 1048576
	// digest 5 1000000
	// double 5 1000000
	// seeded:42 5 1000000
}

func ExampleNewWeighted() {
	family, err := hashfamily.NewWeighted(1 << 25)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(family.AppendIndices(nil, []byte("abc")))

	_, err = hashfamily.NewWeighted(1000)
	fmt.Println(err)
	// Output:
	// [3014 5538 12914 17766 96354 136518 367014]
	// hash family weighted: 1000 bits are not a power of two: use 512 or 1024
}

func ExampleNewDigest() {
	family, err := hashfamily.NewDigest(1000, 10)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(family.AppendIndices(nil, []byte("example.com")))
	// Output:
	// [200 706 912 746 592 336 897 57 350 548]
}

// The key decides the indices: who does not know it cannot prepare collisions.
func ExampleNewDouble() {
	key := make([]byte, hashfamily.KeySize) // random and secret in earnest
	for range 2 {
		family, err := hashfamily.NewDouble(1000, 5, key)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(family.AppendIndices(nil, []byte("example.com")))
		key[0]++
	}
	// Output:
	// [407 905 296 580 757]
	// [500 708 878 10 104]
}

func ExampleNewDoubleMurmur3() {
	family, err := hashfamily.NewDoubleMurmur3(1000, 5)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(family.AppendIndices(nil, []byte("example.com")))
	// Output:
	// [285 347 51 397 385]
}

// From a wanted rate to a filter for 10,000 keys.
func ExampleNewSeeded() {
	bitsPerKey, k, err := hashfamily.SeededSize(0.01)
	if err != nil {
		fmt.Println(err)
		return
	}
	family, err := hashfamily.NewSeeded(10_000*uint64(bitsPerKey), k, 42)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(family.Name(), "has", family.K(), "functions over", family.M(), "bits")
	fmt.Println(family.AppendIndices(nil, []byte("example.com")))
	// Output:
	// seeded:42 has 5 functions over 100000 bits
	// [40760 10041 99057 7808 36294]
}

func ExampleSeededSize() {
	for _, fpr := range []float64{0.1, 0.001, 0.00001} {
		fmt.Println(hashfamily.SeededSize(fpr))
	}
	// Output:
	// 5 3 <nil>
	// 15 8 <nil>
	// 0 0 false positive rate 1e-05: the lowest of the seeded family is 6.713708129260063e-05, at 20 bits a key and 14 hashes: use that or more, or another family
}

// In 2^28 bits all names under .com have one BP index.
func ExampleBP() {
	const m = 1 << 28
	fmt.Println(hashfamily.BP([]byte("example.com")) % m)
	fmt.Println(hashfamily.BP([]byte("another-example.com")) % m)
	// Output:
	// 98105325
	// 98105325
}
