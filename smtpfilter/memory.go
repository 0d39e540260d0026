package smtpfilter

import (
	"bufio"
	"io"
	"net/textproto"
	"reflect"

	"github.com/emersion/go-smtp"
)

// smallBuffer is the new size of go-smtp's two buffers, in bytes. go-smtp reads canonical
// lines of at most 264 bytes, and writes replies that the wire.Conn replaces. Both go
// through memory only, so larger buffers save nothing.
const smallBuffer = 264

// shrinkSMTPBuffers replaces go-smtp's two buffers of 4 KiB, which net/textproto makes for
// every connection, by small ones. They are most of the memory of an idle connection (see
// docs/reliability.md). go-smtp has no setting for them, so shrinkSMTPBuffers takes the
// *textproto.Conn from an unexported field. It changes nothing and reports false if
// go-smtp has no such field, or has data in a buffer.
//
// Conn is where go-smtp reads and writes. The goroutine that serves the connection calls
// shrinkSMTPBuffers between a command and its reply.
func shrinkSMTPBuffers(c *smtp.Conn, conn io.ReadWriter) bool {
	field := reflect.ValueOf(c).Elem().FieldByName("text")
	if !field.IsValid() || field.Type() != reflect.TypeFor[*textproto.Conn]() || field.IsNil() {
		return false
	}
	text := (*textproto.Conn)(field.UnsafePointer())
	if text.R.Buffered() > 0 || text.W.Buffered() > 0 {
		return false
	}
	text.R = bufio.NewReaderSize(conn, smallBuffer)
	text.W = bufio.NewWriterSize(conn, smallBuffer)
	return true
}

// stackSize is what the deepest calls of a transaction need, in bytes.
const stackSize = 9 << 10

// growStack grows the goroutine's stack to what a transaction needs. Without it the stack
// grows in steps, and each step copies all frames. A goroutine begins with the average
// stack of others, which is small if most clients wait.
//
//go:noinline
func growStack(i int) byte {
	var stack [stackSize]byte
	return stack[i%stackSize]
}
