package main

import (
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/emersion/go-smtp"
)

// counting is a server that counts sessions. It refuses the listed sender unless it
// is lenient.
type counting struct {
	lenient                      bool
	connections, refused, stored atomic.Int64
}

func (c *counting) NewSession(*smtp.Conn) (smtp.Session, error) {
	c.connections.Add(1)
	return &countingSession{counting: c}, nil
}

type countingSession struct {
	*counting
	from string
}

func (s *countingSession) Mail(from string, _ *smtp.MailOptions) error { s.from = from; return nil }

func (s *countingSession) Rcpt(string, *smtp.RcptOptions) error {
	if s.from == listedSender && !s.lenient {
		s.refused.Add(1)
		return &smtp.SMTPError{Code: 554, EnhancedCode: smtp.EnhancedCode{5, 7, 1}, Message: "listed"}
	}
	return nil
}

func (s *countingSession) Data(r io.Reader) error {
	n, err := io.Copy(io.Discard, r)
	if n >= 4<<10 {
		s.stored.Add(1)
	}
	return err
}

func (s *countingSession) Reset()        {}
func (s *countingSession) Logout() error { return nil }

// startCounting starts the server in this process, as the generators' target.
func startCounting(t *testing.T, lenient bool) (*counting, *servers) {
	t.Helper()
	c := &counting{lenient: lenient}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := smtp.NewServer(c)
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return c, &servers{targets: []target{{name: direct, addr: l.Addr().String()}}, idle: map[string]idleness{}}
}

func TestGenerators(t *testing.T) {
	for name, tt := range map[string]struct {
		order                        order
		connections, refused, stored int64
	}{
		"flood":    {order{Flood: &floodOrder{Clients: 5, Refusals: 23}}, 23, 23, 0},
		"each":     {order{Refusals: &refusalOrder{Refusals: 7}}, 7, 7, 0},
		"kept":     {order{Refusals: &refusalOrder{Refusals: refusalsPerConnection + 1, Keep: true}}, 2, refusalsPerConnection + 1, 0},
		"at once":  {order{Refusals: &refusalOrder{Refusals: 7, Keep: true, Pipelined: true}}, 1, 7, 0},
		"messages": {order{Timed: &timedOrder{Messages: 30, Rate: 1000}}, latencySessions, 0, 30},
	} {
		t.Run(name, func(t *testing.T) {
			c, s := startCounting(t, false)
			result, err := s.generate(context.Background(), s.targets[0], tt.order)
			if err != nil {
				t.Fatal(err)
			}
			if c.connections.Load() != tt.connections || c.refused.Load() != tt.refused || c.stored.Load() != tt.stored {
				t.Errorf("%d connections, %d refused, %d stored; want %d, %d, %d",
					c.connections.Load(), c.refused.Load(), c.stored.Load(), tt.connections, tt.refused, tt.stored)
			}
			if result.Seconds <= 0 || result.share <= 0 || tt.order.Timed != nil && !(0 < result.Waits[0] && result.Waits[0] <= result.Waits[1]) {
				t.Errorf("%+v", result)
			}
		})
	}
}

// TestGeneratorsCheck has a server that refuses nobody: that must not count as
// quick refusals.
func TestGeneratorsCheck(t *testing.T) {
	_, s := startCounting(t, true)
	for name, o := range map[string]order{
		"flood":   {Flood: &floodOrder{Clients: 2, Refusals: 4}},
		"each":    {Refusals: &refusalOrder{Refusals: 1}},
		"at once": {Refusals: &refusalOrder{Refusals: 1, Pipelined: true}},
	} {
		_, err := s.generate(context.Background(), s.targets[0], o)
		if err == nil || !strings.Contains(err.Error(), `was answered with "250 `) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, err := s.generate(context.Background(), s.targets[0], order{}); err == nil {
		t.Error("an order without work: no error")
	}
}
