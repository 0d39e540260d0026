package config

import (
	"testing"

	"spamgate/internal/words"
)

// TestSize: each size is written so that it is parsed as the same.
func TestSize(t *testing.T) {
	for text, want := range map[string]string{
		"1GiB": "1GiB", "1.5GiB": "1536MiB", "1024MiB": "1GiB", "500 mib": "500MiB", "1000KB": "1MB", "1073741824B": "1GiB", "1b": "1B", "0B": "0B", "8388607TiB": "8388607TiB",
	} {
		bytes, ok := words.ParseSize(text)
		size := Size(bytes).String()
		again, okAgain := words.ParseSize(size)
		if !ok || !okAgain || again != bytes || size != want {
			t.Errorf("%s: %s, %t, again %d, %t; want %s", text, size, ok, again, okAgain, want)
		}
	}
	for _, text := range []string{"", "1", "GiB", "1.3GiB", "-1GiB", "1GiB ", "1 G", "8388608TiB", "9999999999999999999B"} {
		if size, ok := words.ParseSize(text); ok {
			t.Errorf("%q: %d", text, size)
		}
	}
}
