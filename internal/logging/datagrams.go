package logging

import (
	"bytes"
	"io"
	"net"
)

// datagrams is the output of a socket that takes each entry by itself. Where the
// connection is lost it connects again; what is refused all the same goes to
// standard error, so that it is not lost.
type datagrams struct {
	connect func() (net.Conn, error)
	conn    net.Conn // nil where there is none now
	stderr  io.Writer
}

func (d *datagrams) write(b batch) (done, kept int) {
	e := b.entries[0]
	data := b.data[:e.size]
	if err := d.send(data); err != nil {
		line := data[e.text:]
		d.stderr.Write(line[:bytes.IndexByte(line, '\n')+1]) // a Writer, which takes everything
	}
	return 1, 1
}

// send sends an entry, over a new connection if need be.
func (d *datagrams) send(data []byte) error {
	if d.conn != nil {
		_, err := d.conn.Write(data)
		if err == nil {
			return nil
		}
		d.conn.Close() // it is of no use any more
		d.conn = nil
	}
	conn, err := d.connect()
	if err != nil {
		return err
	}
	d.conn = conn
	_, err = conn.Write(data)
	return err
}

func (d *datagrams) reopen() {}

func (d *datagrams) close() error {
	if d.conn == nil {
		return nil
	}
	return d.conn.Close()
}
