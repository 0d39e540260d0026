// Package disposable embeds a real list, 121,570 domains of disposable mail providers,
// for the hash laboratory, benchmarks and tests.
//
// Source: the npm package disposable-email-domains 1.0.62 (MIT licence, by its
// authors).
package disposable

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"sync"
)

// Count is the number of domains.
const Count = 121_570

//go:embed disposable-email-domains.txt.gz
var zipped []byte

// Text returns the list as published: one domain per line, each with a line feed, some
// in Unicode. The bytes are shared: do not change them.
var Text = sync.OnceValue(func() []byte {
	r, err := gzip.NewReader(bytes.NewReader(zipped))
	if err == nil {
		var text []byte
		if text, err = io.ReadAll(r); err == nil {
			return slices.Clip(text) // so that an append makes a copy
		}
	}
	panic(fmt.Sprintf("disposable: the embedded list: %v", err)) // the program was built wrongly
})

// Domains returns the lines of Text, in order. They are shared: do not change them.
var Domains = sync.OnceValue(func() [][]byte {
	return bytes.Split(bytes.TrimSuffix(Text(), []byte("\n")), []byte("\n"))
})
