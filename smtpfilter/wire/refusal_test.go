package wire_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"spamgate/smtpfilter/wire"
)

// commands is a body that would do harm as commands.
const commands = "MAIL FROM:<body@example.com>\r\nRCPT TO:<body@example.net>\r\nDATA\r\nSubject: x\r\n\r\n.\r\nRSET\r\n"

const (
	mail = "MAIL FROM:<%s@example.com>\r\n"
	rcpt = "RCPT TO:<b@example.net>\r\n"
)

// refusals are ways of refusing a chunk. One that is last in the session is
// followed by QUIT, and refused as one says; of two that are pipelined, the first
// not being the last, the replies to both are two.
var refusals = []struct {
	name   string
	before string // commands and chunks before it
	text   string // of the chunk
	first  string // the replies to what is before
	item   string // the replies to a last chunk and QUIT
	two    string // the replies to two chunks and QUIT
	size   string // the announced size where it is not the chunk's
}{
	{name: "no MAIL", text: commands, item: "503 221", two: "503 503 221"},
	{name: "no recipient", before: fmt.Sprintf(mail, "a"), text: commands,
		first: "250", item: "503 221", two: "503 503 221"},
	{name: "MAIL refused", before: fmt.Sprintf(mail, "refused") + rcpt, text: commands,
		first: "550 503", item: "503 221", two: "503 503 221"},
	{name: "RCPT refused", before: fmt.Sprintf(mail, "a") + "RCPT TO:<refused@example.net>\r\n", text: commands,
		first: "250 550", item: "503 221", two: "503 503 221"},
	{name: "MAIL malformed", before: "MAIL FROM:<a b@example.com>\r\n" + rcpt, text: commands,
		first: "501 503", item: "503 221", two: "503 503 221"},
	{name: "given up before", before: fmt.Sprintf(mail, "a") + rcpt + "BDAT 3\r\nx\r\nRSET\r\n", text: commands,
		first: "250 250 250 250", item: "503 221", two: "503 503 221"},
	{name: "announced too large", before: fmt.Sprintf(mail, "a") + rcpt, text: strings.Repeat(commands, 50),
		first: "250 250", item: "552 221", two: "552 503 221"},
	{name: "too large with the one before", before: fmt.Sprintf(mail, "a") + rcpt + "BDAT 3900\r\n" + strings.Repeat("x\r\n", 1300),
		text: strings.Repeat(commands, 2), first: "250 250 250", item: "552 221", two: "552 503 221"},
	{name: "far too large", before: fmt.Sprintf(mail, "a") + rcpt, text: commands, size: "99999999999",
		first: "250 250", item: "552", two: "552"},
	{name: "far too large, no MAIL", text: commands, size: "99999999999", item: "503", two: "503"},
	{name: "no size", before: fmt.Sprintf(mail, "a") + rcpt, text: commands, size: "0x10",
		first: "250 250", item: "501", two: "501"},
	{name: "more than int64", before: fmt.Sprintf(mail, "a") + rcpt, text: commands, size: "9999999999999999999",
		first: "250 250", item: "501", two: "501"},
	{name: "no size between chunks", before: fmt.Sprintf(mail, "a") + rcpt + "BDAT 3\r\nx\r\n", text: commands, size: "-1",
		first: "250 250 250", item: "501", two: "501"},
	{name: "header too large", before: fmt.Sprintf(mail, "header") + rcpt, text: commands,
		first: "250 250", item: "552 221", two: "552 503 221"},
	{name: "refused early", before: fmt.Sprintf(mail, "early") + rcpt, text: commands,
		first: "250 250", item: "550 221", two: "550 503 221"},
	{name: "refused in the middle", before: fmt.Sprintf(mail, "middle") + rcpt, text: commands,
		first: "250 250", item: "550 221", two: "550 503 221"},
	{name: "NUL", before: fmt.Sprintf(mail, "a") + rcpt, text: "x\x00y\r\n" + commands,
		first: "250 250", item: "550 221", two: "550 503 221"},
	{name: "bare LF", before: fmt.Sprintf(mail, "a") + rcpt, text: "x\n" + commands,
		first: "250 250", item: "550 221", two: "550 503 221"},
	{name: "bare CR", before: fmt.Sprintf(mail, "a") + rcpt, text: "x\r" + commands,
		first: "250 250", item: "550 221", two: "550 503 221"},
	{name: "CR at the end", before: fmt.Sprintf(mail, "a") + rcpt + "BDAT 2\r\nx\r", text: commands,
		first: "250 250 250", item: "550 221", two: "550 503 221"},
}

// TestRefusedChunks refuses chunks full of commands, which come in packets of
// five kinds. No byte of a chunk is executed.
func TestRefusedChunks(t *testing.T) {
	for _, tt := range refusals {
		size := tt.size
		if size == "" {
			size = fmt.Sprint(len(tt.text))
		}
		head := tt.before + "BDAT " + size
		single := []string{head + " LAST\r\n", tt.text, "QUIT\r\n"}
		whole := strings.Join(single, "")
		half := len(tt.text) / 2
		for _, packets := range []struct {
			name   string
			pieces []string
			want   string
		}{
			{"whole", []string{whole}, tt.item},
			{"bytewise", strings.Split(whole, ""), tt.item},
			{"command and chunk", single, tt.item},
			{"chunk divided", []string{single[0] + tt.text[:half], tt.text[half:] + single[2]}, tt.item},
			{"two chunks", []string{head + "\r\n" + tt.text + whole[len(tt.before):]}, tt.two},
		} {
			t.Run(tt.name+"/"+packets.name, func(t *testing.T) {
				t.Parallel()
				g := newGate(t, wire.Config{Rules: wire.Rules{MaxMessageBytes: 4000, DataTimeout: waitLimit}})
				c := dial(t, g.addr)
				if c.reply() != "220" {
					t.Fatal("no greeting")
				}
				io.WriteString(c, "EHLO client.example\r\n")
				if c.reply() != "250" {
					t.Fatal("EHLO is refused")
				}
				for _, piece := range packets.pieces {
					if _, err := io.WriteString(c, piece); err != nil {
						break // the gate may hang up before the end
					}
				}
				want := strings.TrimSpace(tt.first + " " + packets.want)
				if got := c.replies(t); got != want {
					t.Errorf("replies %q, want %q", got, want)
				}
				g.checkNothing(t)
			})
		}
	}
}

// checkNothing checks that no message was taken, and no byte of one for a
// command.
func (g *gate) checkNothing(t *testing.T) {
	t.Helper()
	if bad := g.executed("<a@", "a@example.com", "refused@", "header@", "early@", "middle@", "b@example.net"); len(bad) > 0 {
		t.Errorf("executed: %q", bad)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.messages) > 0 {
		t.Errorf("taken: %q", g.messages)
	}
}

// TestFaultsAtEveryOffset puts a NUL, the size limit and silence at 100 offsets of
// a message full of commands that is sent with DATA, and silence and the end of
// the connection in one that is sent with BDAT. Nothing of it is executed.
func TestFaultsAtEveryOffset(t *testing.T) {
	body := strings.ReplaceAll(commands, "\r\n.\r\n", "\r\n..\r\n") + "NOOP\r\nQUIT\r\nHELP\r\n"
	const silent = 10 * time.Millisecond
	for _, tt := range []struct {
		name string
		cfg  func(pos int) wire.Config
		send func(pos int) string // behind the replies to MAIL and RCPT
		then string               // what is sent behind the reply
		want string
	}{
		{"NUL", func(int) wire.Config { return wire.Config{} },
			func(pos int) string { return "DATA\r\n" + body[:pos] + "\x00" + body[pos:] + ".\r\n" }, commands, "354 550"},
		{"limit", func(pos int) wire.Config { return wire.Config{Rules: wire.Rules{MaxMessageBytes: int64(pos + 1)}} },
			func(pos int) string { return "DATA\r\n" + body + "12\r\n.\r\n" }, commands, "354 552"},
		{"silence", func(int) wire.Config { return wire.Config{Rules: wire.Rules{DataTimeout: silent}} },
			func(pos int) string { return "DATA\r\n" + body[:pos] }, body + ".\r\n" + commands, "354 421"},
		{"silence in a chunk", func(int) wire.Config { return wire.Config{Rules: wire.Rules{DataTimeout: silent}} },
			func(pos int) string { return fmt.Sprintf("BDAT %d LAST\r\n", len(body)) + body[:pos] }, body + commands, "421"},
		{"silence behind a chunk", func(int) wire.Config { return wire.Config{Rules: wire.Rules{DataTimeout: silent}} },
			func(pos int) string { return fmt.Sprintf("BDAT %d\r\n", pos) + body[:pos] }, commands, "250 421"},
	} {
		for pos := range 100 {
			t.Run(fmt.Sprintf("%s/%d", tt.name, pos), func(t *testing.T) {
				t.Parallel()
				g := newGate(t, tt.cfg(pos))
				c := dial(t, g.addr)
				io.WriteString(c, "EHLO client.example\r\n"+fmt.Sprintf(mail, "a")+rcpt)
				for _, want := range []string{"220", "250", "250", "250"} {
					if got := c.reply(); got != want {
						t.Fatalf("reply %s, want %s", got, want)
					}
				}
				io.WriteString(c, tt.send(pos))
				var got []string
				for range strings.Fields(tt.want) {
					got = append(got, c.reply())
				}
				io.WriteString(c, tt.then)
				if rest := c.replies(t); rest != "" || strings.Join(got, " ") != tt.want {
					t.Errorf("replies %v and then %q, want %q", got, rest, tt.want)
				}
				g.checkNothing(t)
			})
		}
	}
}

// TestBinaryMessage sends any bytes in chunks with BODY=BINARYMIME, above all those that
// would end DATA.
func TestBinaryMessage(t *testing.T) {
	g := newGate(t, wire.Config{Extensions: func(*wire.Conn) wire.Extensions {
		return wire.Extensions{"CHUNKING": nil, "BINARYMIME": nil, "8BITMIME": nil}
	}})
	var text strings.Builder
	for i := range 256 {
		fmt.Fprintf(&text, "%c%s\r\n.\r\n\r.\n", i, string([]byte{byte(i)}))
	}
	binary := "MAIL FROM:<a@example.com> BODY=BINARYMIME\r\n" + rcpt
	c := dial(t, g.addr)
	io.WriteString(c, "EHLO client.example\r\n"+binary+"DATA\r\n")
	for _, want := range []string{"220", "250", "250", "250", "503"} {
		if got := c.reply(); got != want {
			t.Fatalf("reply %s, want %s", got, want)
		}
	}
	io.WriteString(c, "RSET\r\n"+binary)
	fmt.Fprintf(c, "BDAT 7\r\n%sBDAT %d LAST\r\n%s", text.String()[:7], text.Len()-7, text.String()[7:])
	io.WriteString(c, "MAIL FROM:<a@example.com>\r\n"+rcpt+"BDAT 2 LAST\r\nx\nQUIT\r\n")
	if got, want := c.replies(t), "250 250 250 250 250 250 250 550 221"; got != want {
		t.Errorf("replies %s, want %s", got, want)
	}
	if len(g.messages) != 1 || g.messages[0] != text.String() {
		t.Errorf("taken: %q", g.messages)
	}
}
