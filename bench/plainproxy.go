package main

import (
	"errors"
	"io"
	"net"
	"time"

	"github.com/emersion/go-smtp"
)

// plainProxy is a proxy of go-smtp alone: its server, and its client with a
// connection to the sink for each session, without lookups. It shows the effect of
// the gate's own wire layer.
type plainProxy struct{ sink string }

// servePlainProxy serves until there is an error.
func servePlainProxy(addr, sink string) error {
	s := smtp.NewServer(plainProxy{sink})
	s.Domain = "plain.example"
	s.ReadTimeout, s.WriteTimeout = time.Minute, time.Minute
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	return s.Serve(l)
}

// NewSession connects to the sink.
func (p plainProxy) NewSession(*smtp.Conn) (smtp.Session, error) {
	c, err := smtp.Dial(p.sink)
	if err != nil {
		return nil, err
	}
	return &plainSession{client: c}, nil
}

// plainSession passes every step on.
type plainSession struct{ client *smtp.Client }

func (s *plainSession) Mail(from string, o *smtp.MailOptions) error { return s.client.Mail(from, nil) }
func (s *plainSession) Rcpt(to string, o *smtp.RcptOptions) error   { return s.client.Rcpt(to, nil) }

func (s *plainSession) Data(r io.Reader) error {
	w, err := s.client.Data()
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, r); err != nil {
		return errors.Join(err, s.client.Close())
	}
	return w.Close()
}

// Reset is also called after every message, where the sink does not need it.
func (s *plainSession) Reset() {}

func (s *plainSession) Logout() error { return s.client.Quit() }
