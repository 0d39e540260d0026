package hashfamily_test

import (
	"fmt"

	"spamgate/hashfamily"
)

func ExampleSumBatch() {
	keys := [][]byte{[]byte("spam@example.com"), []byte("@offers.example")}
	hashes := make([][11]uint32, len(keys))
	hashfamily.SumBatch(hashes, keys)
	for i, key := range keys {
		fmt.Printf("%s: RS %d, AP %d\n", key, hashes[i][0], hashes[i][10])
	}
	fmt.Println(hashes[0] == hashfamily.Sum11(keys[0]))
	// Output:
	// spam@example.com: RS 1562754642, AP 1473236412
	// @offers.example: RS 1576136945, AP 2768456576
	// true
}
