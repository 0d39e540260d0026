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

func ExampleParseFamily() {
	family, err := hashfamily.ParseFamily("classic:RS,JS,AP", 1<<28)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(family.Name(), "has", family.K(), "functions over", family.M(), "bits")
	fmt.Println(family.AppendIndices(nil, []byte("spam@example.com")))

	_, err = hashfamily.ParseFamily("classic:RS,MD5", 1<<28)
	fmt.Println(err)
	// Output:
	// classic:RS,JS,AP has 3 functions over 268435456 bits
	// [220577362 82834159 131059132]
	// hash family classic: no hash "MD5": choose from RS,JS,PJW,ELF,BKDR,SDBM,DJB,DEK,BP,FNV,AP
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
