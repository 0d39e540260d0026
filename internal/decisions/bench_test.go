package decisions

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// cpu returns the CPU time of this process.
func cpu(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// traffic makes decisions like those of a gate: 20,000 senders of 3,000 domains, of which some are
// frequent, and 2,000 recipients.
type traffic struct {
	r       *rand.Rand
	instant time.Time
	i       int
}

func newTraffic(instant time.Time) *traffic {
	return &traffic{r: rand.New(rand.NewPCG(1, 2)), instant: instant}
}

func (t *traffic) next(step time.Duration) *Decision {
	t.i++
	t.instant = t.instant.Add(step)
	domain := fmt.Sprintf("mail%d.company%d.example", t.r.IntN(3), int(t.r.ExpFloat64()*300))
	sender := fmt.Sprintf("user%d@%s", t.r.IntN(20), domain)
	recipient := fmt.Sprintf("person%d@example.net", t.r.IntN(2000))
	list := "blocked"
	if t.r.IntN(20) == 0 {
		list = "dns-list"
	}
	id := fmt.Sprintf("%012X", uint64(t.i)*0x9E3779B97F4A7C15>>16)
	return &Decision{
		ID: id, Time: t.instant, Event: "refused", Level: "INFO", Action: "reject",
		Client: fmt.Sprintf("203.0.%d.%d:%d", t.r.IntN(50), t.r.IntN(256), 1024+t.r.IntN(60000)), Helo: domain,
		Sender: sender, Recipients: []string{recipient}, List: list, Entry: domain, Reason: "unsolicited mail",
		Reply:    fmt.Sprintf("550 5.7.1 <%s> refused: list %s (unsolicited mail); id %s", sender, list, id),
		Duration: time.Duration(t.r.IntN(1e6)),
		Attrs:    []Attr{{"generation", "17"}, {"tls", "TLS1.3"}, {"identity", "envelope"}, {"source", "/etc/spamgate/lists/blocked.txt:6"}},
	}
}

// BenchmarkRecord reports what a row costs: CPU of the whole process, and bytes on disk.
func BenchmarkRecord(b *testing.B) {
	w, _, dir := open(b, func(o *Options) { o.MaxBytes = 1 << 40 })
	rows := make([]*Decision, b.N)
	made := newTraffic(time.Now())
	for i := range rows {
		rows[i] = made.next(200 * time.Microsecond)
	}
	b.ResetTimer()
	before := cpu(b)
	for i, d := range rows {
		w.Record(d)
		rows[i] = nil
		if i%5000 == 4999 {
			if err := w.Sync(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := w.Sync(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(b.N), "cpu-µs/row")
	b.ReportMetric(float64(diskBytes(b, dir))/float64(b.N), "bytes/row")
}

// BenchmarkSteady records 5,000 rows a second: -benchtime 3000000x takes 10 minutes.
func BenchmarkSteady(b *testing.B) {
	const each, rows = 10 * time.Millisecond, 50
	w, _, dir := open(b, func(o *Options) { o.MaxBytes = 1 << 40 })
	made := newTraffic(time.Now())
	tick := time.NewTicker(each)
	defer tick.Stop()
	before, queued := cpu(b), 0
	for i := 0; i < b.N; {
		<-tick.C
		for range rows {
			w.Record(made.next(each / rows))
			i++
		}
		queued = max(queued, w.Stats().Queued)
	}
	write(b, w)
	b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(b.N), "cpu-µs/row")
	b.ReportMetric(float64(diskBytes(b, dir))/float64(b.N), "bytes/row")
	b.ReportMetric(float64(queued), "queued-at-most")
	if s := w.Stats(); s.Dropped != 0 || s.Err != "" {
		b.Errorf("%+v", s)
	}
}

func diskBytes(t testing.TB, dir string) (total int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.Name() != totalsName {
			total += info.Size()
		}
	}
	return total
}

// fromEnv returns the number in an environment variable.
func fromEnv(t testing.TB, name string, otherwise int) int {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s is not a number of 1 or more", name, v)
	}
	return n
}

// BenchmarkFind reports how long a search for the first page of 50 takes, over SPAMGATE_HISTORY rows of
// a week, which were written in batches of SPAMGATE_HISTORY_BATCH. With -v it logs the bytes of a row.
func BenchmarkFind(b *testing.B) {
	n, batch := fromEnv(b, "SPAMGATE_HISTORY", 200_000), fromEnv(b, "SPAMGATE_HISTORY_BATCH", 5000)
	w, r, dir := open(b, func(o *Options) { o.MaxBytes, o.Keep = 1<<40, 400*24*time.Hour })
	span := 7 * 24 * time.Hour
	made := newTraffic(time.Now().Add(-span))
	for i := range n {
		d := made.next(span / time.Duration(n))
		if i == n/2 {
			d.ID, d.Sender, d.Recipients, d.List = "RARE", "rare@rare.example", []string{"rare@example.net"}, "rare"
		}
		if w.Record(d); i%batch == batch-1 {
			write(b, w)
		}
	}
	write(b, w)
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	b.Logf("%d rows in batches of %d, %d bytes each", n, batch, diskBytes(b, dir)/int64(n))
	for _, test := range []struct {
		name string
		q    Query
	}{
		{"newest", Query{}},
		{"id", Query{ID: "RARE"}},
		{"id none", Query{ID: "NONE"}},
		{"sender many", Query{Sender: "user1@mail1.company1.example"}},
		{"sender rare", Query{Sender: "rare@rare.example"}},
		{"sender none", Query{Sender: "nobody@nowhere.example"}},
		{"address none", Query{Address: "nobody@nowhere.example"}},
		{"recipient many", Query{Recipient: "person7@example.net"}},
		{"recipient none", Query{Recipient: "nobody@example.net"}},
		{"domain many", Query{Domain: "company1.example"}},
		{"domain none", Query{Domain: "nowhere.example"}},
		{"client", Query{Client: "203.0.7.7"}},
		{"list frequent", Query{List: "blocked"}},
		{"list rare", Query{List: "rare"}},
		{"list and rare recipient", Query{List: "blocked", Recipient: "rare@example.net"}},
		{"two frequent, none of both", Query{List: "rare", Domain: "company1.example"}},
		{"own recipients, sender none", Query{Sender: "nobody@nowhere.example", RecipientDomains: []string{"example.net"}}},
		{"own recipients none", Query{RecipientDomains: []string{"example.com", "example.org"}}},
		{"own recipients", Query{RecipientDomains: []string{"example.net"}}},
		{"until", Query{Until: time.Now().Add(-span / 2)}},
	} {
		b.Run(test.name, func(b *testing.B) {
			test.q.Limit = 50
			var p Page
			before := cpu(b)
			for b.Loop() {
				var err error
				if p, err = r.Find(b.Context(), test.q); err != nil || p.Incomplete {
					b.Fatal(err, p.Incomplete)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/query")
			b.ReportMetric(float64((cpu(b)-before).Microseconds())/1000/float64(b.N), "cpu-ms/query")
			b.ReportMetric(float64(len(p.Decisions)), "rows")
		})
	}
	for _, kind := range []string{TopSenders, TopDomains, TopLists, TopClients} {
		b.Run("top "+kind+" of a day", func(b *testing.B) {
			for b.Loop() {
				if _, err := r.Top(b.Context(), kind, time.Now().Add(-24*time.Hour), 20, Query{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/query")
		})
	}
}
