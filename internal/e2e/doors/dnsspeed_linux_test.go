package doors

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"spamgate/internal/e2e/harness"
)

// speedEnv is the environment variable with the number of entries for TestDNSSpeed.
const speedEnv = "SPAMGATE_DNS"

// TestDNSSpeed has dnsperf ask the gate and rbldnsd in turn, for names of which a fifth is
// listed. It prints answers a second, and answers for a second of the server's CPU time.
func TestDNSSpeed(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv(speedEnv))
	if err != nil {
		t.Skip("takes minutes; SPAMGATE_DNS=10000000 runs it with ten million entries")
	}
	harness.Program(t, "rbldnsd", "rbldnsd")
	dnsperf := harness.Program(t, "dnsperf", "dnsperf")
	dir := openDir(t)
	plain, zone, questions := filepath.Join(dir, "blocked.txt"), filepath.Join(dir, "zone"), filepath.Join(dir, "questions")
	writeSpeedFiles(t, n, plain, zone, questions)
	g := startDoors(t, harness.Setup{
		Listen: harness.NoListener, Lists: "[[list]]\nname = \"blocked\"\npath = \"" + plain + "\"\n",
		Tables: "[[dns_server]]\nname = \"dns\"\naddr = \"127.0.0.1:0\"\nzone = \"bl.example.org\"\nnetwork_answers_per_second = 0\n",
	})
	other, process := startRBLDNSD(t, zone)
	servers := []*speed{{name: "spamgate", addr: doorAddr(g, "dns"), pid: g.Process.Pid}, {name: "rbldnsd", addr: other, pid: process.Pid}}
	for range 5 {
		for _, s := range servers {
			s.measure(t, dnsperf, questions)
		}
	}
	for _, s := range servers {
		t.Logf("%-8s %d entries: %.0f answers/s, %.0f answers for a second of CPU time", s.name, n, float64(s.answers)/s.seconds, s.perCPU())
	}
	t.Logf("ratio of the latter: %.2f", servers[0].perCPU()/servers[1].perCPU())
}

// writeSpeedFiles writes a list of n names in both formats, and questions.
func writeSpeedFiles(t *testing.T, n int, plain, zone, questions string) {
	t.Helper()
	name := func(i int) string {
		if i%3 == 0 {
			return fmt.Sprintf("host%d.dom%d.test", i, i%100003)
		}
		return fmt.Sprintf("name%d.example", i)
	}
	write := func(path string, lines func(w *bufio.Writer)) {
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		w := bufio.NewWriter(f)
		lines(w)
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for path, prefix := range map[string]string{plain: "", zone: "."} {
		write(path, func(w *bufio.Writer) {
			for i := range n {
				fmt.Fprintln(w, prefix+name(i))
			}
		})
	}
	random := rand.New(rand.NewPCG(1, 15))
	write(questions, func(w *bufio.Writer) {
		for range 200_000 {
			asked := fmt.Sprintf("mail.clean%d.example", random.IntN(10_000_000))
			switch random.IntN(5) {
			case 0:
				asked = name(random.IntN(n))
			case 1, 2:
				asked = fmt.Sprintf("clean%d.org", random.IntN(10_000_000))
			}
			fmt.Fprintln(w, asked+".bl.example.org A")
		}
	})
}

// speed is what was measured of a server.
type speed struct {
	name, addr   string
	pid          int
	answers      int
	seconds, cpu float64
}

func (s *speed) perCPU() float64 { return float64(s.answers) / s.cpu }

var dnsperfSaid = regexp.MustCompile(`(?s)Queries completed: +(\d+).*Run time \(s\): +([\d.]+)`)

// measure runs dnsperf for 5 seconds.
func (s *speed) measure(t *testing.T, dnsperf, questions string) {
	t.Helper()
	host, port, _ := net.SplitHostPort(s.addr)
	before := harness.CPUTime(t, s.pid)
	out, stderr, code := harness.Run(t, exec.Command(dnsperf, "-s", host, "-p", port, "-d", questions, "-l", "5", "-c", "4", "-T", "1", "-q", "200"))
	s.cpu += (harness.CPUTime(t, s.pid) - before).Seconds()
	lines := dnsperfSaid.FindStringSubmatch(out)
	if code != 0 || lines == nil {
		t.Fatalf("dnsperf: exit code %d\n%s%s", code, out, stderr)
	}
	answers, _ := strconv.Atoi(lines[1])
	seconds, _ := strconv.ParseFloat(lines[2], 64)
	s.answers += answers
	s.seconds += seconds
}
