package milter

import (
	"net"
	"os/exec"
	"strconv"
	"testing"

	"spamgate/internal/e2e/harness"
)

// BenchmarkPostfix measures messages of 4 KiB from 4 sessions through a Postfix that discards
// them: without and with the milter.
func BenchmarkPostfix(b *testing.B) {
	source := harness.Program(b, "smtp-source", "postfix")
	_, milter := startGate(b, "")
	for _, c := range []struct{ name, milters string }{
		{"without", "smtpd_milters ="},
		{"with", "smtpd_milters = inet:" + milter},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := harness.StartPostfix(b, harness.Everywhere, "virtual_mailbox_domains =", "relayhost =", "default_transport = discard:", c.milters)
			host, port, _ := net.SplitHostPort(p.Addr)
			b.ResetTimer()
			cmd := exec.Command(source, "-s", "4", "-d", "-m", strconv.Itoa(b.N), "-l", "4096",
				"-f", "a@clean.example", "-t", you, "inet:"+net.JoinHostPort(host, port))
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("%v\n%s", err, out)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}
