package world

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"spamgate/internal/dirwatch"
	"spamgate/internal/resolver"
	"spamgate/smtpfilter/clientname/dnstest"
)

// TestAnswers plays questions to up to three DNS servers, which answer, fail, refer to others, are
// silent or gone.
//
// What is watched: a question has an answer if one of the servers has one, and it is that of such a
// server; else it has none, and not "there is no such name".
func TestAnswers(t *testing.T) {
	run(t, &part{few: 200, draw: drawAnswers, play: playAnswers})
}

// An answerMove is a question, and what each server does with it.
type answerMove struct {
	name    string
	servers []string
}

func (m *answerMove) String() string { return fmt.Sprintf("%+v", *m) }

func drawAnswers(r *rand.Rand) []move {
	n := 1 + r.IntN(3)
	moves := make([]move, 1+r.IntN(8))
	for i := range moves {
		m := &answerMove{name: pick(r, "listed.example", "other.example")}
		for range n {
			m.servers = append(m.servers, pick(r, "answers", "fails", "refers", "is silent", "is gone"))
		}
		moves[i] = m
	}
	return moves
}

func playAnswers(w *world, moves []move) (err error) {
	synctest.Test(w.T, func(t *testing.T) {
		var servers []*dnstest.Server
		var addrs []netip.AddrPort
		for i := range 3 {
			s := dnstest.NewMemory(t)
			s.AddAddr("listed.example", "127.0.0.2", 60)
			servers, addrs = append(servers, s), append(addrs, netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), 53))
		}
		r := resolver.New(func(ctx context.Context, network, address string) (net.Conn, error) {
			return servers[slices.Index(addrs, netip.MustParseAddrPort(address))].Dial(ctx, network, address)
		}, "")
		for i, m := range moves {
			if err = playAnswer(w, i+1, m.(*answerMove), r, servers, addrs); err != nil {
				return
			}
		}
	})
	return err
}

func playAnswer(w *world, n int, m *answerMove, r *resolver.Resolver, servers []*dnstest.Server, addrs []netip.AddrPort) error {
	if n == 1 {
		r.Configure(addrs[:len(m.servers)])
	}
	for i, does := range m.servers {
		servers[i].Behave(map[string]dnstest.Behavior{
			"fails": {Fail: true}, "refers": {Lie: refer}, "is gone": {Refuse: true},
			"is silent": {Lie: func([]byte, string) [][]byte { return nil }},
		}[does])
	}
	reply, cause := r.Ask(context.Background(), m.name, dns.TypeA, 2*time.Second)
	w.tell("%d. %s, %v: %q", n, m.name, m.servers, cause)
	listed := m.name == "listed.example"
	switch good := slices.Contains(m.servers, "answers"); {
	case good && cause != "":
		return fmt.Errorf("%v: no answer about %s: %s", m.servers, m.name, cause)
	case !good && cause == "":
		return fmt.Errorf("%v: an answer about %s, which nobody gave: %v", m.servers, m.name, reply)
	case good && (len(reply.Answer) == 1) != listed:
		return fmt.Errorf("%v: the answer about %s is %v", m.servers, m.name, reply)
	}
	return nil
}

// refer makes a reply one that refers to other servers.
func refer(reply []byte, _ string) [][]byte {
	m := new(dns.Msg)
	check(m.Unpack(reply))
	m.Answer, m.Ns, m.Rcode, m.Authoritative, m.RecursionAvailable = nil, []dns.RR{must(dns.NewRR("example. 60 IN NS ns.example."))}, dns.RcodeSuccess, false, false
	return [][]byte{must(m.Pack())}
}

// TestPaths plays trees of files and links, and paths and patterns that lead through them.
//
// What is watched: a path leads to what the system finds there, and a pattern to the files that a shell
// would find; a loop of links has an end.
func TestPaths(t *testing.T) {
	run(t, &part{few: 300, draw: drawPaths, play: playPaths})
}

// A pathMove makes a file, a directory or a link, or looks for a path.
type pathMove struct{ what, path, target string }

func (m *pathMove) String() string { return fmt.Sprintf("%+v", *m) }

func drawPaths(r *rand.Rand) []move {
	somewhere := func() string {
		names := []string{pick(r, "a", "b", "c")}
		for range r.IntN(3) {
			names = append(names, pick(r, "a", "b", "c", ".."))
		}
		return strings.Join(names, "/")
	}
	moves := make([]move, 8+r.IntN(16))
	for i := range moves {
		m := &pathMove{what: pick(r, "file", "directory", "directory", "link", "link", "find", "find", "find"), path: somewhere(), target: pick(r, "", "", "../", "/") + somewhere()}
		if m.what == "find" && r.IntN(2) == 0 {
			m.path = strings.ReplaceAll(m.path, pick(r, "a", "b"), pick(r, "*", "[ab]"))
		}
		moves[i] = m
	}
	return moves
}

func playPaths(w *world, moves []move) error {
	w.dir = must(filepath.EvalSymlinks(w.dir))
	for i, m := range moves {
		m := m.(*pathMove)
		path := w.dir + "/" + m.path
		where, err := filepath.EvalSymlinks(path[:strings.LastIndex(path, "/")])
		if m.what != "find" && (err != nil || !strings.HasPrefix(where+"/", w.dir+"/")) {
			continue // a link leads out of the world
		}
		switch m.what {
		case "file":
			_ = os.WriteFile(path, nil, 0o600)
		case "directory":
			_ = os.Mkdir(path, 0o700)
		case "link":
			target := m.target
			if target[0] == '/' {
				target = w.dir + target
			}
			_ = os.Symlink(target, path)
		case "find":
			if err := playFind(w, i+1, path); err != nil {
				return err
			}
		}
	}
	return nil
}

// playFind compares what a path leads to with what the system says.
func playFind(w *world, n int, path string) error {
	shown := strings.TrimPrefix(path, w.dir)
	found, err := findPath(path)
	if errors.Is(err, errEndless) {
		return fmt.Errorf("%s: %w", shown, err)
	}
	w.tell("%d. find %s: %d", n, shown, len(found))
	if strings.ContainsAny(path, "*[") {
		if strings.Contains(path, "..") {
			return nil // which Glob takes for nothing after a link
		}
		for _, p := range must(filepath.Glob(path)) {
			if info, problem := os.Stat(p); err == nil && problem == nil && !info.IsDir() && !slices.Contains(found, p) {
				return fmt.Errorf("%s: %q, without %s", shown, found, p)
			}
		}
		return nil
	}
	_, missing := os.Stat(path)
	loop := errors.Is(missing, syscall.ELOOP)
	switch {
	case (missing == nil) != (err == nil), missing == nil && !slices.Equal(found, []string{path}):
		return fmt.Errorf("%s: %q, %w, but the system says %w", shown, found, err, missing)
	case loop != errors.Is(err, syscall.ELOOP), errors.Is(missing, fs.ErrNotExist) != errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w, but the system says %w", shown, err, missing)
	}
	return nil
}

var errEndless = errors.New("the search does not end")

// findPath finds a path, in at most 10,000 steps.
func findPath(path string) (found []string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errEndless
		}
	}()
	steps := 0
	return dirwatch.Find([]string{path}, func(string, string) {
		if steps++; steps > 10_000 {
			panic(errEndless)
		}
	})
}
