package publish

import (
	"fmt"
	"strconv"
	"strings"
)

// Comment is the trusted comment of a signature: see the package's comment.
type Comment struct {
	File      string
	Timestamp int64
	Sequence  int64
	Expires   int64 // 0 means never
	SHA256    string
}

func (c Comment) String() string {
	s := fmt.Sprintf("timestamp:%d\tfile:%s\thashed\tsequence:%d", c.Timestamp, c.File, c.Sequence)
	if c.Expires != 0 {
		s += fmt.Sprintf("\texpires:%d", c.Expires)
	}
	return s + "\tsha256:" + c.SHA256
}

// readComment reads what Comment.String has written. What is missing, or is not as it should
// be, stays zero: package fetch has the reader for comments of others.
func readComment(text string) (c Comment) {
	for field := range strings.SplitSeq(text, "\t") {
		name, value, _ := strings.Cut(field, ":")
		n, err := strconv.ParseInt(value, 10, 48)
		if err != nil {
			n = 0
		}
		switch name {
		case "timestamp":
			c.Timestamp = max(0, n)
		case "file":
			c.File = value
		case "sequence":
			c.Sequence = max(0, n)
		case "expires":
			c.Expires = max(0, n)
		case "sha256":
			c.SHA256 = value
		}
	}
	return c
}
