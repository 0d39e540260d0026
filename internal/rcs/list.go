package rcs

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"fmt"
	"io"
	"regexp"
)

// How lists name their patches, and what is in those: https://github.com/ameshkov/diffupdates.
// uBlock Origin takes the field also from comments that begin with "# ".
var pathField = regexp.MustCompile(`(?im)^(?:! *|# +)Diff-Path: *(\S+)`)

// maxHead is how far from its begin a list names its patch, in bytes.
const maxHead = 1024

// Path returns what a list says is the patch that makes the next version of it: a path relative
// to the list, with the name of the list in the patch as its fragment. It is empty if the list
// does not say.
func Path(list io.ReaderAt) string {
	head := make([]byte, maxHead)
	n, _ := list.ReadAt(head, 0) // a list that cannot be read has no patch
	if found := pathField.FindSubmatch(head[:n]); found != nil {
		return string(found[1])
	}
	return ""
}

// Patch returns the patch with a script that makes a list with a checksum.
func Patch(name string, script []byte, result [sha1.Size]byte) []byte {
	head := fmt.Sprintf("diff name:%s checksum:%x lines:%d\n", name, result, bytes.Count(script, []byte("\n")))
	return append([]byte(head), script...)
}

// Script returns the script of a patch for one list. The caller checks what the script makes:
// the patch's checksum is not used.
func Script(patch io.Reader) (io.Reader, error) {
	in := bufio.NewReader(patch)
	if start, _ := in.Peek(len("diff ")); string(start) != "diff " {
		return in, nil
	}
	_, err := in.ReadSlice('\n')
	return in, err
}
