package blocklist

import "crypto/sha256"

// ContentSumWith is the [ContentSum] that a list's files will have when one of
// them has a content of this SHA-256.
func ContentSumWith(paths []string, file string, sum [sha256.Size]byte) (string, error) {
	sums := make([][sha256.Size]byte, len(paths))
	for i, path := range paths {
		if path == file {
			sums[i] = sum
			continue
		}
		var err error
		if sums[i], err = fileSum(path); err != nil {
			return "", err
		}
	}
	return contentSum(sums), nil
}
