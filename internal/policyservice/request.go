package policyservice

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Limits of a question. Postfix sends about 35 attributes in less than 2 KiB.
const (
	maxLine       = 4 << 10 // with its line feed; the size of the buffer of a door.Conn
	maxAttributes = 100
	maxRequest    = 64 << 10
)

// accessPolicy is the only kind of question that smtpd asks.
const accessPolicy = "smtpd_access_policy"

// request is a question of Postfix: the attributes that an answer depends on. An attribute
// that was not sent is empty. The values are valid until the next call of read.
type request struct {
	request    []byte // accessPolicy
	state      []byte // the SMTP command: "RCPT"
	sender     []byte // without brackets and quotes; empty for <>, and before MAIL
	recipient  []byte // likewise; empty where it is unknown
	client     []byte // IP address, or "unknown"
	clientPort []byte
	helo       []byte
	login      []byte // of the client that has authenticated
	queueID    []byte
	instance   []byte // of the message; empty before its first recipient

	values []byte   // the array of the values
	key    []byte   // see appendKey
	about  *message // set by the answer; nil if the question is about none
}

// reset forgets the attributes, and keeps the array of their values if it is small.
func (q *request) reset() {
	values := q.values[:0]
	if values == nil || cap(values) > maxLine {
		values = make([]byte, 0, 1<<10)
	}
	*q = request{values: values, key: q.key[:0]}
}

// attribute returns the field of an attribute, or nil for one that no answer depends on.
func (q *request) attribute(name []byte) *[]byte {
	switch string(name) {
	case "request":
		return &q.request
	case "protocol_state":
		return &q.state
	case "sender":
		return &q.sender
	case "recipient":
		return &q.recipient
	case "client_address":
		return &q.client
	case "client_port":
		return &q.clientPort
	case "helo_name":
		return &q.helo
	case "sasl_username":
		return &q.login
	case "queue_id":
		return &q.queueID
	case "instance":
		return &q.instance
	}
	return nil
}

// protocolError says why a question is not one of Postfix.
type protocolError string

func (e protocolError) Error() string { return string(e) }

// read reads a question: lines "name=value" and an empty line. If a name comes twice, the
// first value counts. It returns io.EOF if the client has closed the connection between two
// questions, and a protocolError for what Postfix does not send.
//
// A line ends in a line feed. A carriage return before it is dropped: Postfix does not send
// one, people who type a question do.
func (q *request) read(r *bufio.Reader) error {
	q.reset()
	for n, size := 0, 0; ; n++ {
		line, err := r.ReadSlice('\n')
		if size += len(line); err != nil {
			return readError(err, size)
		}
		line = bytes.TrimSuffix(line[:len(line)-1], []byte("\r"))
		switch {
		case len(line) == 0:
			return q.check()
		case n == maxAttributes:
			return protocolError(fmt.Sprintf("more than %d attributes", maxAttributes))
		case size > maxRequest:
			return protocolError(fmt.Sprintf("more than %d bytes", maxRequest))
		}
		if err := q.add(line); err != nil {
			return err
		}
	}
}

// readError returns the error of a read that has failed after size bytes of a question.
func readError(err error, size int) error {
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return protocolError(fmt.Sprintf("a line of more than %d bytes", maxLine))
	case err == io.EOF && size > 0:
		return io.ErrUnexpectedEOF
	}
	return err
}

// add adds the attribute in a line.
func (q *request) add(line []byte) error {
	name, value, ok := bytes.Cut(line, []byte("="))
	switch {
	case !ok:
		return protocolError(`a line without "="`)
	case bytes.IndexByte(line, 0) >= 0:
		return protocolError("a NUL byte")
	}
	if field := q.attribute(name); field != nil && *field == nil {
		begin := len(q.values)
		q.values = append(q.values, value...)
		*field = q.values[begin:len(q.values):len(q.values)]
	}
	return nil
}

// check returns an error for a question of another kind.
func (q *request) check() error {
	switch {
	case q.request == nil:
		return protocolError(`the attribute "request" is missing`)
	case string(q.request) != accessPolicy:
		return protocolError(fmt.Sprintf("request=%.40q, want %s", q.request, accessPolicy))
	}
	return nil
}
