package natsserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// TestMain sees that closed servers leave nothing.
func TestMain(m *testing.M) {
	hurry()
	if childMain() {
		return
	}
	before := ours()
	code := m.Run()
	var after string
	for range 500 { // most end at once
		if after = ours(); after == "" {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if before != "" || after != "" {
		fmt.Fprintf(os.Stderr, "goroutines before:\n%s\nafter:\n%s\n", before, after)
		code = 1
	}
	os.Exit(code)
}

// TestAlone writes to a server, which has it after a restart.
func TestAlone(t *testing.T) {
	o := options(t, 1)[0]
	s := start(t, o)
	nc := connect(t, nats.Token(token), o)
	kv := bucket(t, nc, "b", 1)
	if err := put(kv, "k", "v"); err != nil {
		t.Fatal(err)
	}
	if st := s.Status(); st.Leader != "mx1" || st.Servers != 1 || st.Connected != 1 || st.Clients != 1 || st.Problem() != "" || !st.Running {
		t.Errorf("status %+v", st)
	}
	s.Close()
	s.Close() // nothing
	start(t, o)
	eventually(t, "the value is back", func() bool { return get(kv, "k") == "v" })
}

// TestDurable sees that the server acknowledges what is on disk only.
func TestDurable(t *testing.T) {
	s := start(t, options(t, 1)[0])
	if c := s.nats.JetStreamConfig(); !c.SyncAlways || c.MaxMemory != maxMemory || c.MaxStore < minStore || c.MaxStore > maxStore {
		t.Errorf("%+v", c)
	}
}

// TestOneStore starts two servers on a store.
func TestOneStore(t *testing.T) {
	o := options(t, 1)[0]
	first := start(t, o)
	second := o
	second.Listen = freeAddr(t)
	if s, err := Start(context.Background(), second); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), o.Dir) {
		t.Errorf("server %v, error %v", s, err)
	}
	first.Close()
	start(t, o)
}

// TestPortTaken has another program on a port.
func TestPortTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, cluster := range []bool{false, true} {
		o := options(t, 3)[0]
		if cluster {
			o.Cluster = l.Addr().String()
		} else {
			o.Listen = l.Addr().String()
		}
		s, err := Start(context.Background(), o)
		if err == nil {
			s.Close()
		}
		if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "another port") {
			t.Error(err)
		}
		ok := options(t, 1)[0] // nothing holds the store
		ok.Dir = o.Dir
		start(t, ok).Close()
	}
}

// TestMistakes has options that cannot work.
func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		change func(*Options)
		want   string
	}{
		{func(o *Options) { o.Routes = nil }, "routes"},
		{func(o *Options) { o.Credentials = secret(t, "-----BEGIN NATS USER JWT-----") }, "token"},
		{func(o *Options) { o.Credentials = secret(t, "") }, "no credentials"},
		{func(o *Options) { o.Credentials += ".missing" }, "no such file"},
		{func(o *Options) { o.Routes = []string{"tls://192.0.2.1:6222"}; o.Credentials = "" }, "set credentials"},
		{func(o *Options) { o.Cert, o.Key = "/missing", "/missing" }, "no such file"},
		{func(o *Options) { o.Dir = "/proc/x" }, "/proc/x"},
		{func(o *Options) { o.Listen = "127.0.0.1:0" }, "port"},
	} {
		o := options(t, 3)[0]
		c.change(&o)
		s, err := Start(context.Background(), o)
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// TestCredentials has clients with the right credentials, with others, and with none.
func TestCredentials(t *testing.T) {
	t.Parallel()
	key, other := seed(t), seed(t)
	for _, c := range []struct {
		text string
		good nats.Option
		bad  []nats.Option
	}{
		{token, nats.Token(token), []nats.Option{nats.Token("other"), nats.Token(""), nats.UserInfo("reader", ""), nkey(t, key)}},
		{key, nkey(t, key), []nats.Option{nkey(t, other), nats.Token(key), nats.Token("")}},
	} {
		o := options(t, 1)[0]
		o.Credentials = secret(t, c.text)
		var log logged
		o.Logger = log.logger()
		s := start(t, o)
		bucket(t, connect(t, c.good, o), "b", 1)
		for i, bad := range c.bad {
			nc, err := nats.Connect("nats://"+o.Listen, bad)
			if err == nil {
				nc.Close()
			}
			if err == nil {
				t.Errorf("client %d is let in", i)
			}
		}
		if problem := s.Status().Problem(); problem != "" || !strings.Contains(log.String(), "a client has other credentials than this server") {
			t.Errorf("after such clients it has the problem %q, and the log\n%s", problem, log.String())
		}
	}
}

func seed(t testing.TB) string {
	t.Helper()
	kp, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	s, err := kp.Seed()
	if err != nil {
		t.Fatal(err)
	}
	return string(s)
}

func nkey(t testing.TB, seed string) nats.Option {
	t.Helper()
	option, err := nats.NkeyOptionFromSeed(secret(t, seed))
	if err != nil {
		t.Fatal(err)
	}
	return option
}

// TestStranger speaks the protocol without a library: nothing is answered before credentials.
func TestStranger(t *testing.T) {
	o := options(t, 3)[0]
	s := start(t, o)
	for name, addr := range map[string]string{"clients": o.Listen, "routes": o.Cluster} {
		for _, say := range []string{
			"SUB > 1\r\nPING\r\n",
			"CONNECT {}\r\nSUB > 1\r\nPING\r\n",
			`CONNECT {"auth_token":""}` + "\r\nPUB $KV.b.k 1\r\nx\r\nPING\r\n",
			`CONNECT {"name":"x","cluster":"spamgate"}` + "\r\nRS+ $G >\r\nPING\r\n",
			`CONNECT {"user":"spamgate","pass":"` + token + `","name":"x","cluster":"spamgate"}` + "\r\nRS+ $G >\r\nPING\r\n",
		} {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(c, say)
			for lines := bufio.NewScanner(c); lines.Scan(); {
				line := lines.Text()
				if name == "routes" {
					if strings.Contains(line, "INFO") {
						t.Errorf("a stranger at the port of routes hears %q", line)
					}
					continue // an alert of TLS
				}
				if !strings.HasPrefix(line, "INFO ") && !strings.HasPrefix(line, "-ERR ") && line != "PING" {
					t.Errorf("%s, %q: %q", name, say, line)
				}
			}
			c.Close()
		}
	}
	if st := s.Status(); st.Connected != 1 || st.Clients != 0 {
		t.Errorf("status %+v", st)
	}
}

// TestStoreFails has JetStream stop, as it does when the disk is full.
func TestStoreFails(t *testing.T) {
	o := options(t, 1)[0]
	log := &logged{}
	o.Logger = log.logger()
	s := start(t, o)
	kv := bucket(t, connect(t, nats.Token(token), o), "b", 1)
	if err := put(kv, "k", "v"); err != nil {
		t.Fatal(err)
	}
	if err := s.nats.ShutdownJetStream(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it runs again", func() bool { return strings.Contains(log.String(), "runs again") })
	eventually(t, "the value is back", func() bool { return get(kv, "k") == "v" })
}

// TestReconnects restarts a server many times: a client finds it again, and closed servers leave
// no lock and no port.
func TestReconnects(t *testing.T) {
	o := options(t, 1)[0]
	s := start(t, o)
	kv := bucket(t, connect(t, nats.Token(token), o), "b", 1)
	for i := range count("SPAMGATE_NATS_RESTARTS", 5) {
		if err := put(kv, "k", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
		s.Close()
		s = start(t, o)
		eventually(t, "the value is back", func() bool { return get(kv, "k") == fmt.Sprint(i) })
	}
}
