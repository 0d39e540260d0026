package term

import (
	"strings"
	"testing"
)

func TestPrintParts(t *testing.T) {
	long := strings.Repeat("x", 64)
	for _, tt := range []struct {
		parts []string
		want  string
	}{
		{[]string{"127.0.0.1:25"}, "  listening  127.0.0.1:25\n"},
		{[]string{"127.0.0.1:25", "STARTTLS"}, "  listening  127.0.0.1:25, STARTTLS\n"},
		{[]string{"a", long}, "  listening  a, " + long + "\n"},                              // 80 columns
		{[]string{"ab", long}, "  listening  ab,\n" + strings.Repeat(" ", 15) + long + "\n"}, // 81
		{[]string{long + long, "b"}, "  listening  " + long + long + ",\n" + strings.Repeat(" ", 15) + "b\n"},
	} {
		var b strings.Builder
		PrintParts(&b, "listening", tt.parts)
		if b.String() != tt.want {
			t.Errorf("%q: got\n%swant\n%s", tt.parts, &b, tt.want)
		}
	}
}
