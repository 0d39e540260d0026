package world

import (
	"fmt"
	"os"
	"runtime"
)

// openFiles is a number of descriptors.
type openFiles int

func descriptors() openFiles {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return openFiles(len(entries))
}

// returned returns an error if there are more descriptors than before. Some are closed when nothing
// refers to the file any more, so it collects garbage first.
func (before openFiles) returned() error {
	for range 100 {
		if descriptors() <= before {
			return nil
		}
		runtime.GC()
	}
	return fmt.Errorf("%d descriptors, and %d before", descriptors(), before)
}
