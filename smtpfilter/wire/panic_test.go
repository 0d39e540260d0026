package wire_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"spamgate/smtpfilter/wire"
)

// panicLog is go-smtp's log of a test.
type panicLog chan string

func (l panicLog) Printf(format string, v ...any) { l <- fmt.Sprintf(format, v...) }
func (l panicLog) Println(v ...any)               { l <- fmt.Sprintln(v...) }

// TestPanic lets each hook panic: the client's connection ends, the log has the panic, and
// the next client is served.
func TestPanic(t *testing.T) {
	for _, tt := range []struct {
		name, send, replies string
		set                 func(cfg *wire.Config, fail func())
	}{
		{"before the greeting", "", "", func(cfg *wire.Config, fail func()) {
			cfg.Connected = func(*wire.Conn) wire.Reply { fail(); return wire.Reply{} }
		}},
		{"between commands", "MAIL FROM:<a b>\r\n", "220", func(cfg *wire.Config, fail func()) {
			cfg.Refused = func(*wire.Conn, string, wire.Reply) { fail() }
		}},
		{"in a command", "EHLO client.example\r\n", "220", func(cfg *wire.Config, fail func()) {
			cfg.Extensions = func(*wire.Conn) wire.Extensions { fail(); return nil }
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			log, failed := make(panicLog, 10), false
			cfg := wire.Config{Hostname: "gate.example"}
			tt.set(&cfg, func() {
				if !failed {
					failed = true
					panic("as asked")
				}
			})
			tcp, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			l := wire.NewListener(tcp, cfg)
			server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &session{g: &gate{}}, nil }))
			server.ErrorLog = log
			served := make(chan error, 1)
			go func() { served <- server.Serve(l) }()
			t.Cleanup(func() {
				l.Close()
				<-served
				l.Drain(t.Context())
			})

			c := dial(t, tcp.Addr().String())
			if tt.replies != "" && c.reply() != tt.replies {
				t.Error("no greeting")
			}
			io.WriteString(c, tt.send)
			if got := c.replies(t); got != "" {
				t.Errorf("the client is told %s", got)
			}
			select {
			case text := <-log:
				if !strings.Contains(text, "panic: as asked\n") {
					t.Errorf("the log has %q", text)
				}
			case <-time.After(waitLimit):
				t.Error("the log has nothing")
			}
			next := dial(t, tcp.Addr().String())
			if got := next.reply(); got != "220" {
				t.Errorf("the next client is told %q", got)
			}
		})
	}
}
