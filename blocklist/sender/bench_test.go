package sender

import "testing"

var benchSender = "newsletter@mail.example.com"

func TestParseAllocs(t *testing.T) {
	for _, s := range []string{"", "<>", benchSender, "<" + benchSender + ">", " a..b@bounce_1.example "} {
		if n := testing.AllocsPerRun(100, func() { Parse(s) }); n != 0 {
			t.Errorf("Parse(%q): %v allocations", s, n)
		}
	}
}

func TestWalkAllocs(t *testing.T) {
	for _, s := range []string{"", benchSender, "user+tag@a.b.c.d.e.example.com", `"a b+c"@example.com`, "u@[192.0.2.1]"} {
		a, err := Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { walkAll(a) }); n != 0 {
			t.Errorf("Walk(%q): %v allocations", s, n)
		}
	}
}

// walkAll walks with its scratch on the stack, as a lookup does.
func walkAll(a Address) (bytes int) {
	var buf [512]byte
	w := a.Walk(buf[:0])
	for k, ok := w.Next(); ok; k, ok = w.Next() {
		bytes += len(k.Text)
	}
	return bytes
}

func BenchmarkParse(b *testing.B) {
	for _, c := range []struct{ name, in string }{
		{"normal", benchSender},
		{"upper", "Newsletter@Mail.Example.COM"},
		{"idn", "newsletter@mail.bücher.example"},
		{"local", "büro@mail.example.com"},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(c.in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkWalk(b *testing.B) {
	for _, c := range []struct{ name, in string }{
		{"three labels", benchSender},
		{"tag", "newsletter+tag@mail.example.com"},
	} {
		b.Run(c.name, func(b *testing.B) {
			a, err := Parse(c.in)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				walkAll(a)
			}
		})
	}
}
