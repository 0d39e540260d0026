package wire_test

import (
	"io"
	"strings"
	"testing"

	"spamgate/smtpfilter/wire"
)

// TestIdleCommands sends commands that bring no message nearer: only so many of them
// come between two messages.
func TestIdleCommands(t *testing.T) {
	const (
		mail    = "MAIL FROM:<a@example.com>\r\nRCPT TO:<b@example.net>\r\n"
		message = mail + "BDAT 3 LAST\r\nx\r\n"
		refused = "MAIL FROM:<early@example.com>\r\nRCPT TO:<b@example.net>\r\nBDAT 3 LAST\r\nx\r\n"
	)
	g := newGate(t, wire.Config{Rules: wire.Rules{MaxRefusals: 10}})
	for _, tt := range []struct{ name, commands, want string }{
		{"as many as may be", strings.Repeat("NOOP\r\n", 9), "220" + strings.Repeat(" 250", 10)},
		{"one more", strings.Repeat("NOOP\r\n", 10), "220" + strings.Repeat(" 250", 10) + " 421"},
		{"of all kinds", "HELO c\r\nRSET\r\nNOOP\r\nVRFY x\r\nHELP\r\nhelp\r\nEHLO c\r\nRSET\r\nRSET\r\nRSET\r\nMAIL FROM:<a@example.com>\r\n",
			"220 250 250 250 250 252 214 214 250 250 250 421"},
		{"transactions for nothing", strings.Repeat("MAIL FROM:<a@example.com>\r\nRSET\r\n", 10), "220" + strings.Repeat(" 250", 20) + " 421"},
		{"between chunks", mail + "BDAT 1\r\nx" + strings.Repeat("NOOP\r\n", 20), "220" + strings.Repeat(" 250", 13) + " 421"},
		{"empty chunks", mail + strings.Repeat("BDAT 0\r\n", 20), "220" + strings.Repeat(" 250", 12) + " 421"},
		{"empty chunks that are refused", strings.Repeat("BDAT 0\r\n", 20), "220 250" + strings.Repeat(" 503", 9) + " 421"},
		{"with messages", strings.Repeat(strings.Repeat("RSET\r\n", 9)+message, 5), "220 250" + strings.Repeat(" 250", 5*12)},
		{"with refused messages", strings.Repeat(strings.Repeat("RSET\r\n", 3)+refused, 5), "220 250" + strings.Repeat(" 250 250 250 250 250 550", 3) + " 421"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := dial(t, g.addr)
			io.WriteString(c, "EHLO client.example\r\n"+tt.commands)
			c.CloseWrite()
			if got := c.replies(t); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}
