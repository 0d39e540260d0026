package console

import (
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/setup"
)

// TestUploadMemory has strangers fill all connections of the console with uploads that never end:
// bodies and large headers of many requests, and a frame as large as a server takes by default. The
// gate keeps little of them, and everybody else is served.
func TestUploadMemory(t *testing.T) {
	const most = 128 << 20 // more than before: without bounds it is 230 to 350 MiB, and with them 30 to 80
	for name, send := range map[string]func(c io.Writer, f *http2.Framer, host string) error{
		"bodies": func(_ io.Writer, f *http2.Framer, host string) (err error) {
			for i := 0; i < 16 && err == nil; i++ {
				if err = beginLogin(f, i, host, 0); err == nil {
					err = f.WriteData(uint32(2*i+1), false, bytes.Repeat([]byte("a"), 15<<10))
				}
			}
			return err
		},
		"headers": func(_ io.Writer, f *http2.Framer, host string) (err error) {
			for i := 0; i < 16 && err == nil; i++ {
				err = beginLogin(f, i, host, 24<<10)
			}
			return err
		},
		"one frame": func(c io.Writer, f *http2.Framer, host string) error {
			if err := beginLogin(f, 0, host, 0); err != nil {
				return err
			}
			const size = 1<<20 - 1
			head := []byte{size >> 16, size >> 8 & 0xff, size & 0xff, byte(http2.FrameData), 0, 0, 0, 0, 1} // RFC 9113, section 4.1
			_, err := c.Write(append(head, make([]byte, size-1)...))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			addr, cert := harness.FreeAddr(t), harness.NewCertificate(t, "gate.example.net")
			g := harness.StartGate(t, harness.Setup{Tables: harness.ConsoleTable(addr, `url = "https://`+addr+`"`,
				`tls_cert = "`+cert.Cert+`"`, `tls_key = "`+cert.Key+`"`)})
			before := harness.ResidentBytes(t, g.Process.Pid)
			trust := &tls.Config{RootCAs: cert.Roots, ServerName: "gate.example.net", NextProtos: []string{"h2"}}
			sent := 0
			for range setup.ConsoleConnections {
				c, err := tls.Dial("tcp", addr, trust)
				if err != nil {
					continue // it has given way to another one
				}
				defer c.Close()
				go func() { _, _ = io.Copy(io.Discard, c) }() // until Close
				f := http2.NewFramer(c, nil)
				if _, err = io.WriteString(c, http2.ClientPreface); err == nil {
					err = f.WriteSettings()
				}
				if err == nil && send(c, f, addr) == nil {
					sent++
				}
			}
			if sent == 0 {
				t.Error("nothing was sent")
			}
			client := &http.Client{Timeout: harness.WorkTimeout, Transport: &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: true, DisableKeepAlives: true}}
			after := before
			for range 30 {
				response, err := client.Get("https://" + addr + "/login")
				if err != nil {
					t.Fatalf("among uploads: %v", err)
				}
				response.Body.Close()
				if response.StatusCode != http.StatusOK {
					t.Fatalf("among uploads: %s", response.Status)
				}
				after = max(after, harness.ResidentBytes(t, g.Process.Pid))
			}
			t.Logf("%d connections have sent all; memory: %d MiB, before %d MiB", sent, after>>20, before>>20)
			if !harness.RaceEnabled() && after-before > most {
				t.Errorf("%d MiB more than before", (after-before)>>20)
			}
		})
	}
}

// beginLogin begins request i of a connection, with about so many bytes in its header.
func beginLogin(f *http2.Framer, i int, host string, size int) error {
	var header bytes.Buffer
	e := hpack.NewEncoder(&header)
	fields := []string{":method", "POST", ":scheme", "https", ":authority", host, ":path", "/login", "content-type", "application/x-www-form-urlencoded"}
	for range size / 4000 {
		fields = append(fields, "x-padding", strings.Repeat("x", 4000))
	}
	for i := 0; i < len(fields); i += 2 {
		if err := e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1], Sensitive: true}); err != nil {
			return err
		}
	}
	id, rest := uint32(2*i+1), header.Bytes()
	part := rest[:min(len(rest), 16_000)]
	rest = rest[len(part):]
	err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: part, EndHeaders: len(rest) == 0})
	for err == nil && len(rest) > 0 {
		part = rest[:min(len(rest), 16_000)]
		rest = rest[len(part):]
		err = f.WriteContinuation(id, len(rest) == 0, part)
	}
	return err
}
