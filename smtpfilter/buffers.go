package smtpfilter

import (
	"bufio"
	"io"
	"net/textproto"
	"reflect"

	"github.com/emersion/go-smtp"
)

// smallBuffer is the size, in bytes, of the two buffers that go-smtp is left with.
// It reads canonical lines of at most 264 bytes, and writes replies that the wire
// layer exchanges; both go through memory only, so that a larger one saves nothing.
const smallBuffer = 264

// shrinkSMTPBuffers exchanges go-smtp's two buffers of 4 KiB, which net/textproto makes for
// every connection, for small ones. They are the greater part of what an idle
// connection costs (see docs/reliability.md), and there is no setting for them:
// the connection's *textproto.Conn has to be taken from an unexported field. Where
// a version of go-smtp has no such field, or holds something in a buffer, nothing
// is changed and shrinkSMTPBuffers reports false.
//
// Conn is where go-smtp reads and writes. It is called by the goroutine that serves
// the connection, between a command and its reply.
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
