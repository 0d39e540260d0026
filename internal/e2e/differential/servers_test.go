package differential

import (
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// lists are the entries of the gates.
const lists = listedDomain + "\n" + listedAddress + "\n"

// A system is a gate with a mail server, set up as documented.
type system struct {
	addr string         // where clients send mail
	mail string         // the directory that messages arrive in, "" for sink
	sink *smtptest.Sink // where messages arrive
	busy func() bool    // reports whether the server has mail to deliver
	seen int            // messages of the sink
}

// startSystem starts a gate with the server of that name.
func startSystem(t testing.TB, name string) *system {
	t.Helper()
	start := systems[name]
	if start == nil {
		t.Fatalf("-servers: there is no server %q; use %s", name, strings.Join(slices.Sorted(maps.Keys(systems)), ", "))
	}
	return start(t)
}

var systems = map[string]func(t testing.TB) *system{
	"none": func(t testing.TB) *system { return startMaildir(t, lists) },
	"postfix": func(t testing.TB) *system {
		p := startPostfix(t, "virtual_transport = virtual")
		return behindPostfix(t, p, filepath.Join(p.Dir, "mail/you/new"))
	},
	"dovecot": func(t testing.TB) *system {
		d := harness.StartDovecot(t, harness.DovecotLMTP, "lmtp")
		return behindPostfix(t, startPostfix(t, "virtual_transport = lmtp:inet:"+bracketed(d.Addr)), filepath.Join(d.Root, "var/mail/you/new"))
	},
	"postfix-smtp": func(t testing.TB) *system {
		sink := smtptest.NewSink(t)
		p := startPostfix(t, "virtual_transport = smtp:"+bracketed(sink.Addr()))
		s := behindPostfix(t, p, "")
		s.sink = sink
		return s
	},
	"exim": func(t testing.TB) *system {
		e := harness.StartExim(t, harness.EximOptions{ProxyFrom: harness.Everywhere})
		return behindServer(startGate(t, "smtp://"+e.Addr, `proxy = "v2"`).Addr, e, "var/spool/exim4/input")
	},
	"opensmtpd": func(t testing.TB) *system {
		o := harness.StartOpenSMTPDListen(t, strings.Replace(harness.OpenSMTPDListen, "hostname", "proxy-v2 hostname", 1))
		return behindServer(startGate(t, "smtp://"+o.Addr, `proxy = "v2"`).Addr, o, "var/spool/smtpd/queue")
	},
	"sendmail": func(t testing.TB) *system {
		sink := smtptest.NewSink(t)
		s := harness.StartSendmail(t, sink.Addr())
		return &system{addr: startGate(t, "smtp://"+s.Addr, "").Addr, sink: sink, busy: hasFiles(s.Root, "var/spool/mqueue")}
	},
	"sendmail-milter": func(t testing.TB) *system {
		sink := smtptest.NewSink(t)
		host, port, _ := net.SplitHostPort(startMilter(t))
		s := harness.StartSendmail(t, sink.Addr(),
			fmt.Sprintf("INPUT_MAIL_FILTER(`spamgate', `S=inet:%s@%s, F=T, T=C:30s;S:30s;R:30s;E:5m')dnl", port, host))
		return &system{addr: s.Addr, sink: sink, busy: hasFiles(s.Root, "var/spool/mqueue")}
	},
	"postfix-milter": func(t testing.TB) *system {
		p := startPostfix(t, "virtual_transport = virtual", "smtpd_milters = inet:"+startMilter(t), "milter_default_action = tempfail")
		return &system{addr: p.Addr, mail: filepath.Join(p.Dir, "mail/you/new"), busy: hasFiles(p.Dir, "queue/incoming", "queue/active")}
	},
}

// startMaildir starts a gate that has entries and delivers into a Maildir.
func startMaildir(t testing.TB, entries string) *system {
	t.Helper()
	g := harness.StartGate(t, harness.Setup{Keys: map[string]string{"listen": manyRefusals}, Files: map[string]string{"blocked.txt": entries}})
	return &system{addr: g.Addr, mail: filepath.Join(g.Dir, "mail/new"), busy: func() bool { return false }}
}

// startPostfix starts a Postfix with README's settings for the gate, which drops bounces.
func startPostfix(t testing.TB, more ...string) *harness.Postfix {
	t.Helper()
	service := harness.PostfixSmtpd + "\n  -o smtpd_authorized_xclient_hosts=127.0.0.0/8\n  -o local_header_rewrite_clients=\nlmtp unix - - n - - lmtp"
	return harness.StartPostfixService(t, service, harness.Everywhere, append(more, "default_transport = discard", "header_checks =",
		"smtpd_error_sleep_time = 0", "smtpd_hard_error_limit = 1000")...)
}

// behindPostfix returns the system of a gate before a Postfix, whose mail arrives in a
// directory.
func behindPostfix(t testing.TB, p *harness.Postfix, mail string) *system {
	t.Helper()
	g := startGate(t, "smtp://"+p.Addr, `identity = "xclient"`)
	return &system{addr: g.Addr, mail: mail, busy: hasFiles(p.Dir, "queue/incoming", "queue/active")}
}

// behindServer returns a system whose mail arrives in the mailbox of a server, which has a
// queue.
func behindServer(addr string, s *harness.ChrootServer, queue string) *system {
	return &system{addr: addr, mail: filepath.Join(s.Root, "var/mail/you/new"), busy: hasFiles(s.Root, queue)}
}

// hasFiles returns a function that reports whether there are files in directories.
func hasFiles(root string, names ...string) func() bool {
	names = append(names, names...) // a file that moves from one to the other is seen in one
	return func() bool { return !harness.HasNoFiles(root, names...) }
}

func bracketed(addr string) string {
	host, port, _ := net.SplitHostPort(addr)
	return "[" + host + "]:" + port
}

const manyRefusals = "max_refusals = 100_000"

// startGate starts a gate with the lists before a server.
func startGate(t testing.TB, nextHop, keys string) *harness.Gate {
	t.Helper()
	return harness.StartGate(t, harness.Setup{
		NextHop: nextHop,
		Keys:    map[string]string{"next_hop": keys, "listen": manyRefusals},
		Files:   map[string]string{"blocked.txt": lists},
	})
}

// startMilter starts a gate with nothing but a milter, and returns its address.
func startMilter(t testing.TB) string {
	t.Helper()
	addr := harness.FreeAddr(t)
	g := harness.LaunchGate(t, harness.Setup{
		Listen: harness.NoListener,
		Files:  map[string]string{"blocked.txt": lists},
		Tables: fmt.Sprintf("[[milter]]\nname = \"beside\"\naddr = %q\n", addr),
	})
	g.WaitRecord("door open", "listener", "beside")
	return addr
}

// clients is how many clients send at the same time.
const clients = 4

// A client sends so many messages on a connection, since servers limit refusals.
const perConnection = 10

// send sends messages to the system and returns its replies.
func (s *system) send(t testing.TB, messages []string) []string {
	t.Helper()
	replies := make([]string, len(messages))
	errs := make([]error, clients)
	var sending sync.WaitGroup
	for k := range clients {
		sending.Go(func() {
			var c *harness.Client
			left := 0 // messages for the connection
			for i := k; i < len(messages); {
				fresh := left == 0
				if fresh {
					if c != nil {
						c.Close()
					}
					if c, errs[k] = harness.Dial(s.addr, "127.0.0.2"); errs[k] != nil {
						return
					}
					left = perConnection
				}
				reply, err := c.Send("a@clean.example", harness.Mailbox, []byte(messages[i]+body(i)))
				if left--; err == nil && reply[0] != '2' {
					left = 0 // Sendmail's refusals may have lines of the header in them
				}
				if err != nil || strings.HasPrefix(reply, "421") {
					left = 0
					if !fresh {
						continue // the message before may have ended the connection
					}
					reply = fmt.Sprintf("4 the connection was closed: %s %v", reply, err)
				}
				replies[i] = reply
				i += clients
			}
			if c != nil {
				c.Close()
			}
		})
	}
	sending.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return replies
}

// body returns the end of a message, by which it is known again.
func body(number int) string { return fmt.Sprintf("case %d\r\n", number) }

var caseNumber = regexp.MustCompile(`(?m)^case (\d+)\r?$`)

// deliver sends messages to the system, and returns the replies and what has arrived, with ""
// for what has not.
func (s *system) deliver(t testing.TB, messages []string) (replies, arrived []string) {
	t.Helper()
	replies, arrived = s.send(t, messages), make([]string, len(messages))
	harness.WaitFor(t, "deliveries", func() bool { return !s.busy() })
	for _, m := range s.take(t) {
		all := caseNumber.FindAllStringSubmatch(m, -1)
		if all == nil {
			t.Fatalf("a message without a number arrived: %.500q", m)
		}
		i, err := strconv.Atoi(all[len(all)-1][1])
		if err != nil || i >= len(arrived) || arrived[i] != "" {
			t.Fatalf("message %d arrived, perhaps again: %.500q", i, m)
		}
		arrived[i] = m
	}
	return replies, arrived
}

// take removes and returns what has arrived.
func (s *system) take(t testing.TB) []string {
	t.Helper()
	if s.sink != nil {
		var texts []string
		all := s.sink.Messages()
		for _, m := range all[s.seen:] {
			if !strings.HasPrefix(m.Mail, "MAIL FROM:<>") { // a bounce
				texts = append(texts, string(m.Body))
			}
		}
		s.seen = len(all)
		return texts
	}
	texts := harness.ReadAll(t, s.mail)
	files, _ := filepath.Glob(filepath.Join(s.mail, "*"))
	for _, file := range files {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	return texts
}
