//go:build unix

package main

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"spamgate/blocklist/judge"
	"spamgate/blocklist/verdict"
	"spamgate/internal/hostile"
	"spamgate/smtpfilter"
)

var costPolicy = smtpfilter.Policy{
	HeaderFields:     []string{"From", "Sender", "Reply-To"},
	RecipientDomains: []string{"example.org", "example.net", ".example.com"},
}

// BenchmarkHostileHeaders judges headers of 256 KiB that are made to cost, with the
// shipped filter, and reports the processor's time for each.
func BenchmarkHostileHeaders(b *testing.B) {
	set := formLists(b, formCase{block: "listed.example; spammer@; x@y.example; *.sub.example", allow: "good.example"})
	j := judge.New(set.Only(nil))
	for _, f := range hostile.Families {
		section := f.Section(256 << 10)
		b.Run(strings.ReplaceAll(f.Name, " ", "_"), func(b *testing.B) {
			calls := 0
			before := cpuTime(b)
			for b.Loop() {
				s := costPolicy.ReadHeader(section, []string{"mx.example.org"})
				calls = 0
				for range costPolicy.JudgeHeader(context.Background(), j, &verdict.Message{}, s, &verdict.For{}) {
					calls++
				}
			}
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N)/1e6, "cpu-ms/256KiB")
			b.ReportMetric(float64(calls), "findings")
		})
	}
}

// cpuTime is what the process has used so far: the figure of a machine with other
// work.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
