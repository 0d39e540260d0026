package policyservice

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"testing/iotest"
)

// wanted are the attributes that a request keeps, in the order of values.
var wanted = []string{"request", "protocol_state", "sender", "recipient", "client_address", "client_port",
	"helo_name", "sasl_username", "queue_id", "instance"}

// values returns the attributes of a request.
func values(q *request) []string {
	var all []string
	for _, name := range wanted {
		all = append(all, string(*q.attribute([]byte(name))))
	}
	return all
}

// readPlain is request.read, written plainly for a text that is there as a whole: it returns
// the attributes and the rest of the text.
func readPlain(text string) (attributes []string, rest string, err error) {
	known := map[string]string{}
	for n, size := 0, 0; ; n++ {
		line, after, ok := strings.Cut(text, "\n")
		switch {
		case len(line) >= maxLine:
			return nil, "", protocolError("line")
		case !ok && len(line) == 0 && n == 0:
			return nil, "", io.EOF
		case !ok:
			return nil, "", io.ErrUnexpectedEOF
		}
		size, text = size+len(line)+1, after
		if line = strings.TrimSuffix(line, "\r"); line == "" {
			break
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || n == maxAttributes || size > maxRequest || strings.Contains(line, "\x00") {
			return nil, "", protocolError("line")
		}
		if _, twice := known[name]; !twice {
			known[name] = value
		}
	}
	if known["request"] != accessPolicy {
		return nil, "", protocolError("request")
	}
	for _, name := range wanted {
		attributes = append(attributes, known[name])
	}
	return attributes, text, nil
}

// compare reads all requests of a text with both readers.
func compare(t *testing.T, text string, in io.Reader) {
	t.Helper()
	r := bufio.NewReaderSize(in, maxLine)
	var q request
	for {
		want, rest, wantErr := readPlain(text)
		err := q.read(r)
		var a, b protocolError
		if errors.As(err, &a) != errors.As(wantErr, &b) || a == "" && err != wantErr {
			t.Fatalf("%q: got error %v, want %v", text, err, wantErr)
		}
		if err != nil {
			return
		}
		if got := values(&q); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Fatalf("%q: got %q, want %q", text, got, want)
		}
		text = rest
	}
}

// good is the question of a Postfix 3.7, with all its attributes.
const good = `request=smtpd_access_policy
protocol_state=RCPT
protocol_name=ESMTP
client_address=192.0.2.1
client_name=mail.example.com
client_port=41234
reverse_client_name=mail.example.com
server_address=192.0.2.25
server_port=25
helo_name=mail.example.com
sender=ann@example.com
recipient=you@example.net
recipient_count=0
queue_id=
instance=1a2b.6921c1f2.6a1b5.0
size=1234
etrn_domain=
stress=
sasl_method=
sasl_username=
sasl_sender=
ccert_subject=
ccert_issuer=
ccert_fingerprint=
ccert_pubkey_fingerprint=
encryption_protocol=TLSv1.3
encryption_cipher=TLS_AES_256_GCM_SHA384
encryption_keysize=256
policy_context=

`

// TestBadRequests: what is not a question of Postfix, and why.
func TestBadRequests(t *testing.T) {
	const first = "request=smtpd_access_policy\n"
	for text, want := range map[string]string{
		"":                                      "EOF",
		"request":                               "unexpected EOF",
		first:                                   "unexpected EOF",
		first + "sender=a@example.com\n":        "unexpected EOF",
		"\n":                                    `the attribute "request" is missing`,
		"\r\n":                                  `the attribute "request" is missing`,
		"sender=a@example.com\n\n":              `the attribute "request" is missing`,
		"request=\n" + first + "\n":             `request="", want smtpd_access_policy`,
		"request=junk_mail\n\n":                 `request="junk_mail", want smtpd_access_policy`,
		"EHLO client.example\r\n":               `a line without "="`,
		first + "sender\n\n":                    `a line without "="`,
		first + "sender=a\x00b@example.com\n\n": "a NUL byte",
		first + "a\x00b=c\n\n":                  "a NUL byte",
		"\x00\n\n":                              `a line without "="`,
		strings.Repeat("a", maxLine):            "a line of more than 4096 bytes",
		first + strings.Repeat("a=b\n", 100):    "more than 100 attributes",
		strings.Repeat(strings.Repeat("a", 2000)+"=\n", 40): "more than 65536 bytes",
	} {
		var q request
		err := q.read(bufio.NewReaderSize(strings.NewReader(text), maxLine))
		if err == nil || err.Error() != want {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
		compare(t, text, strings.NewReader(text))
	}
}

// TestLargestRequest: the limits themselves are within them.
func TestLargestRequest(t *testing.T) {
	long := "x=" + strings.Repeat("a", maxLine-len("x=\n")) + "\n"
	for _, text := range []string{
		"request=smtpd_access_policy\n" + long + "\n",
		"request=smtpd_access_policy\n" + strings.Repeat("a=b\n", 99) + "\n",
		strings.Repeat(long, 15) + "request=smtpd_access_policy\n\n",
	} {
		compare(t, text, strings.NewReader(text))
		if err := new(request).read(bufio.NewReaderSize(strings.NewReader(text), maxLine)); err != nil {
			t.Errorf("%.60q: %v", text, err)
		}
	}
}

// TestOrder: attributes in any order, each twice, with others between them, in pieces, and
// with the line ends of a terminal, are the same question.
func TestOrder(t *testing.T) {
	want, _, err := readPlain(good)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		lines := strings.Split(strings.TrimSuffix(good, "\n\n"), "\n")
		for i := range 20 {
			lines = append(lines, fmt.Sprintf("unknown_%d=request=a=b", i))
		}
		random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		for _, line := range lines[:40] {
			name, _, _ := strings.Cut(line, "=")
			lines = append(lines, name+"=another")
		}
		end := []string{"\n", "\r\n"}[random.IntN(2)]
		text := strings.Join(lines, end) + end + end
		var q request
		if err := q.read(bufio.NewReaderSize(iotest.HalfReader(strings.NewReader(text)), maxLine)); err != nil {
			t.Fatal(err)
		}
		if got := values(&q); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Fatalf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestLargeRequestIsForgotten: a connection does not keep the memory of a large question.
func TestLargeRequestIsForgotten(t *testing.T) {
	large := strings.Replace(good, "ann@", strings.Repeat("a", 3000)+"@", 1)
	large = strings.Replace(large, "you@", strings.Repeat("b", 3000)+"@", 1)
	var q request
	r := bufio.NewReaderSize(strings.NewReader(large+good), maxLine)
	for range 2 {
		if err := q.read(r); err != nil {
			t.Fatal(err)
		}
	}
	if cap(q.values) > maxLine || string(q.sender) != "ann@example.com" {
		t.Errorf("%d bytes are kept, sender %q", cap(q.values), q.sender)
	}
}

func FuzzRequest(f *testing.F) {
	for _, seed := range []string{good, good + good, "request=smtpd_access_policy\r\n\r\n", "\n", "a", "=\n\n",
		"request=smtpd_access_policy\nsender=\x00\n\n", "request=smtpd_access_policy\nsender=a\nsender=b\n\nx"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		compare(t, text, strings.NewReader(text))
		compare(t, text, iotest.OneByteReader(strings.NewReader(text)))
	})
}

// TestPath: addresses of Postfix become those of SMTP commands.
func TestPath(t *testing.T) {
	for address, want := range map[string]string{
		"":                        "",
		"ann@example.com":         "ann@example.com",
		"Ann@Example.Com.":        "Ann@Example.Com.",
		"postmaster":              "postmaster",
		"ann smith@example.com":   `"ann smith"@example.com`,
		`"ann smith"@example.com`: `"ann smith"@example.com`,
		`"ann"@example.com`:       `"ann"@example.com`,
		`"a"b"@example.com`:       `"\"a\"b\""@example.com`,
		`a"b\@example.com`:        `"a\"b\\"@example.com`,
		"a@b@example.com":         `"a@b"@example.com`,
		"@example.com":            "@example.com",
		"a..b.@example.com":       "a..b.@example.com",
		"jürgen@bücher.example":   "jürgen@bücher.example",
		"a@[192.0.2.1]":           "a@[192.0.2.1]",
		"a%b.example@example.com": "a%b.example@example.com",
		"ann@":                    "ann@",
		"a\r@example.com":         "\"a\r\"@example.com",
	} {
		if got := path([]byte(address)); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

func TestClient(t *testing.T) {
	for _, c := range []struct{ address, port, want string }{
		{"192.0.2.1", "25", "192.0.2.1:25"},
		{"192.0.2.1", "", "192.0.2.1:0"},
		{"192.0.2.1", "unknown", "192.0.2.1:0"},
		{"192.0.2.1", "65536", "192.0.2.1:0"},
		{"2001:db8::1", "25", "[2001:db8::1]:25"},
		{"IPv6:2001:DB8::1", "25", "[2001:db8::1]:25"},
		{"ipv6:2001:db8::1", "25", "[2001:db8::1]:25"},
		{"::ffff:192.0.2.1", "25", "192.0.2.1:25"},
		{"fe80::1%eth0", "25", "[fe80::1]:25"},
		{"unknown", "unknown", ""},
		{"", "", ""},
		{"IPv6:", "25", ""},
		{"192.0.2.1 ", "25", ""},
	} {
		var want netip.AddrPort
		if c.want != "" {
			want = netip.MustParseAddrPort(c.want)
		}
		if got := client([]byte(c.address), []byte(c.port)); got != want {
			t.Errorf("%s, %s: %v, want %v", c.address, c.port, got, want)
		}
	}
}
