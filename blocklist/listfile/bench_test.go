package listfile

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// mixed is a plain list of n lines: domains of 20 bytes and addresses of 33.
func mixed(n int) string {
	var b strings.Builder
	for i := range n {
		if i%2 == 0 {
			fmt.Fprintf(&b, "d%011d.example\n", i)
		} else {
			fmt.Fprintf(&b, "user.%09d@host.%05d.example\n", i, i%100000)
		}
	}
	return b.String()
}

func nothing() func(Entry) error { return func(Entry) error { return nil } }

func BenchmarkRead(b *testing.B) {
	text := mixed(200_000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := read(strings.NewReader(text), Options{}, nothing(), nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadParallel(b *testing.B) {
	text := mixed(200_000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ReadParallel(b.Context(), strings.NewReader(text), Options{}, runtime.GOMAXPROCS(0), nothing, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReadTenMillion is the size that issue and documentation speak of; it
// takes some seconds and 270 MB.
func BenchmarkReadTenMillion(b *testing.B) {
	text := mixed(10_000_000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r, err := ReadParallel(b.Context(), strings.NewReader(text), Options{}, runtime.GOMAXPROCS(0), nothing, nil)
		if err != nil || r.Entries != 10_000_000 {
			b.Fatal(r, err)
		}
	}
}

// BenchmarkFormats reads 100,000 lines of each format in the ordinary form.
func BenchmarkFormats(b *testing.B) {
	for _, f := range Formats[1:] {
		line := map[Format]string{
			Plain:         "host%d.example.com\n",
			Hosts:         "0.0.0.0 host%d.example.com\n",
			PostfixAccess: "host%d.example.com REJECT spam\n",
			RBLDNSD:       ".host%d.example.com :127.0.0.2:spam\n",
			SpamAssassin:  "blocklist_from *@host%d.example.com\n",
			Rspamd:        "host%d.example.com 5\n",
			Adblock:       "||host%d.example.com^\n",
			Dnsmasq:       "address=/host%d.example.com/\n",
			RPZ:           "host%d.example.com CNAME .\n",
			URLs:          "https://host%d.example.com/\n",
			CSV:           "host%d.example.com,spam\n",
			JSON:          "\"host%d.example.com\",\n",
		}[f]
		var text strings.Builder
		if f == JSON {
			text.WriteString("[")
		}
		for i := range 100_000 {
			fmt.Fprintf(&text, line, i)
		}
		if f == JSON {
			text.WriteString(`"example.com"]`)
		}
		b.Run(string(f), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, err := ReadParallel(b.Context(), strings.NewReader(text.String()), Options{Format: f}, runtime.GOMAXPROCS(0), nothing, nil)
				if err != nil || r.Entries < 100_000 {
					b.Fatal(r, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/line")
		})
	}
}
