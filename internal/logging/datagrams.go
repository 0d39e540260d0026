package logging

import (
	"bytes"
	"io"
	"log/slog"
	"net"
)

// datagrams is the output of a socket that takes one entry per call. It reconnects
// if the connection is lost. Entries that are refused again go to standard error.
type datagrams struct {
	connect func() (net.Conn, error)
	conn    net.Conn // nil: not connected
	stderr  io.Writer
}

// newDatagrams connects, and returns a Log that sends encoded entries.
func newDatagrams(o Options, encode encodeFunc, connect func() (net.Conn, error)) (*Log, error) {
	conn, err := connect()
	if err != nil {
		return nil, err
	}
	l := newLog(&datagrams{connect: connect, conn: conn, stderr: o.Stderr}, relayNotice(o, encode), o)
	l.Logger = slog.New(newRelay(o, encode, l.queue.add))
	return l, nil
}

func (d *datagrams) write(b batch) (done, kept int) {
	e := b.entries[0]
	data := b.data[:e.size]
	if err := d.send(data); err != nil {
		line := data[e.text:]
		d.stderr.Write(line[:bytes.IndexByte(line, '\n')+1]) // a Writer, which never fails
	}
	return 1, 1
}

// send sends an entry, over a new connection if necessary.
func (d *datagrams) send(data []byte) error {
	if d.conn != nil {
		_, err := d.conn.Write(data)
		if err == nil {
			return nil
		}
		d.conn.Close()
	}
	var err error
	if d.conn, err = d.connect(); err != nil {
		d.conn = nil
		return err
	}
	_, err = d.conn.Write(data)
	return err
}

func (d *datagrams) reopen() {}

func (d *datagrams) close() error {
	if d.conn == nil {
		return nil
	}
	return d.conn.Close()
}
