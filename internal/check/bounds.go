package check

import (
	"context"
	"fmt"
	"io"
)

// Bounds of a question, unless a command asks.
const (
	maxAddress    = 4 << 10 // bytes; SMTP allows far less
	maxRecipients = 1000
)

// validate returns an error if a question is larger than any that makes sense.
func (q *Question) validate() error {
	if len(q.Address) > maxAddress {
		return fmt.Errorf("an address of %d bytes: mail has none of more than %d", len(q.Address), maxAddress)
	}
	if len(q.Recipients) > maxRecipients {
		return fmt.Errorf("%d recipients: ask for at most %d at a time", len(q.Recipients), maxRecipients)
	}
	return nil
}

// boundedReader reads as long as the context does not end, and returns an error for a message
// that is longer than left.
type boundedReader struct {
	ctx  context.Context
	r    io.Reader
	left int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.ctx.Err() != nil {
		return 0, context.Cause(b.ctx)
	}
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("the message has more than %d bytes", int64(MaxMessageBytes))
	}
	return n, err
}
