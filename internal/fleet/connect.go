package fleet

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"spamgate/internal/fleet/credentials"
)

// link is a member's connection: to the servers, and to the buckets that they have.
type link struct {
	*core
	nc                 *nats.Conn
	lost               func() // called after the loss of the connection, with the lock
	failures, patience int    // of a session, which alone uses them; see goElsewhere

	mu       sync.Mutex
	changed  chan struct{}   // closed when something below, or of a list, changes
	alive    context.Context // ends with the connection
	cut      context.CancelCauseFunc
	buckets  *buckets        // nil while there are none
	trouble  error           // why there are none, or no connection
	servers  []Server        // that have the lists, as the servers said lately
	down     time.Time       // since when there is trouble
	writer   bool            // the server has shown that it permits edits
	asks     bool            // the server does not permit to use JetStream: other gates are asked
	readOnly error           // what the server has not permitted, if that makes edits impossible
	denied   map[string]bool // what it has not permitted: the first parts of subjects
	clock    time.Duration   // the servers' clock minus the own
}

// connect begins to connect, and goes on until it succeeds, now and after each loss.
func (m *link) connect() error {
	options := []nats.Option{
		nats.Name(ClientName(m.o.Name)),
		nats.CustomInboxPrefix(Inbox(m.o.Name)),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(m.o.times.retry),
		nats.ReconnectJitter(m.o.times.retry, 2*m.o.times.retry),
		nats.ReconnectBufSize(-1), // what cannot be sent now is an error now
		nats.IgnoreAuthErrorAbort(),
		nats.Timeout(5 * time.Second),
		nats.PingInterval(5 * time.Second),
		nats.MaxPingsOutstanding(2),
		nats.ConnectHandler(m.connected),
		nats.ReconnectHandler(m.connected),
		nats.DisconnectErrHandler(m.disconnected),
		nats.ReconnectErrHandler(m.disconnected),
		nats.ErrorHandler(m.asyncError),
	}
	if m.o.TLS != nil {
		options = append(options, nats.Secure(m.o.TLS))
	}
	who, err := readCredentials(m.o.Credentials)
	if err != nil {
		return err
	}
	options = append(options, who...)
	if m.o.Edges != nil {
		options = append(options, m.o.Edges.NATS...)
	}
	m.nc, err = nats.Connect(strings.Join(m.o.Servers, ","), options...)
	return err
}

// readCredentials returns the options for a file of credentials (package credentials). The file
// is read again for each connection.
func readCredentials(path string) ([]nats.Option, error) {
	if path == "" {
		return nil, nil
	}
	c, err := credentials.Read(path)
	switch {
	case err != nil:
		return nil, err
	case c.User:
		return []nats.Option{nats.UserCredentials(path)}, nil
	case c.Seed != "":
		option, err := nats.NkeyOptionFromSeed(path)
		return []nats.Option{option}, err
	}
	return []nats.Option{nats.TokenHandler(func() string {
		if current, err := credentials.Read(path); err == nil {
			return current.Token
		}
		return c.Token
	})}, nil
}

// connected is called after each connect.
func (m *link) connected(nc *nats.Conn) {
	m.counters.connects.Add(1)
	m.log.Info("connected to the fleet", "server", nc.ConnectedUrlRedacted())
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cut(errLost)
	m.alive, m.cut = context.WithCancelCause(m.ctx)
	m.writer, m.asks, m.readOnly, m.denied = false, false, nil, map[string]bool{}
	if m.buckets != nil {
		m.setTrouble(nil)
	}
	m.notify()
}

// disconnected is called after the loss of the connection, and after each attempt that fails.
func (m *link) disconnected(nc *nats.Conn, err error) {
	m.mu.Lock()
	if err == nil {
		err = nc.LastError()
	}
	if err == nil {
		err = errors.New("the connection has ended")
	}
	err = withAdvice(err)
	was, failure := m.trouble, err
	m.cut(errLost)
	m.setTrouble(err)
	m.lost()
	m.notify()
	m.mu.Unlock()
	if m.ctx.Err() == nil && (was == nil || was.Error() != failure.Error()) {
		m.log.Warn("not connected to the fleet", "error", failure)
	}
}

// errLost says that the connection was lost.
var errLost = errors.New("the connection was lost")

// isLinked reports whether there is a connection. The caller has the lock.
func (m *link) isLinked() bool { return m.alive.Err() == nil && m.nc.IsConnected() }

// linked is a context that ends with the connection, too: the answers to what was asked before do
// not come any more, and the library waits for them.
type linked struct {
	context.Context
	link   context.Context // ends with the connection
	cancel context.CancelCauseFunc
	unlink func() bool
}

// whileLinked returns a context for questions on the present connection. The caller calls end.
func (m *link) whileLinked(ctx context.Context) *linked {
	m.mu.Lock()
	l := &linked{link: m.alive}
	m.mu.Unlock()
	l.Context, l.cancel = context.WithCancelCause(ctx)
	if l.link.Err() != nil { // AfterFunc would tell it later
		l.cancel(context.Cause(l.link))
	}
	l.unlink = context.AfterFunc(l.link, func() { l.cancel(context.Cause(l.link)) })
	return l
}

// end releases the context.
func (l *linked) end() {
	l.unlink()
	l.cancel(nil)
}

// outlive lets the context go on without the connection. It reports whether that is still there.
func (l *linked) outlive() bool { return l.unlink() }

// isLost reports whether the connection has ended.
func (l *linked) isLost() bool { return errors.Is(context.Cause(l.link), errLost) }

// lost returns errLost for an error that the end of the connection may explain, else err.
func (l *linked) lost(err error) error {
	if errors.As(err, new(*net.OpError)) {
		<-l.Done() // the library reads that the connection has ended a moment after it could not write
	}
	if err != nil && (l.isLost() || slices.ContainsFunc(lostErrors, func(e error) bool { return errors.Is(err, e) })) {
		return errLost
	}
	return err
}

// lostErrors are what the library says of a lost connection, which may be before it calls
// disconnected.
var lostErrors = []error{nats.ErrDisconnected, nats.ErrReconnectBufExceeded, nats.ErrConnectionReconnecting}

// onLink calls ask, and again on the next connection if this one is lost meanwhile.
func (m *link) onLink(ctx context.Context, ask func(context.Context) error) error {
	for {
		linked := m.whileLinked(ctx)
		err := linked.lost(ask(linked))
		linked.end()
		if !errors.Is(err, errLost) {
			return err
		}
		if b, err := m.reach(ctx); b == nil {
			return err
		}
	}
}

// withAdvice adds to an error of connecting what to do about it.
func withAdvice(err error) error {
	advice := ""
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked), errors.Is(err, nats.ErrAccountAuthExpired):
		advice = "the server refuses the credentials: put those of this fleet into the file that [fleet] names"
	case errors.Is(err, nats.ErrSecureConnRequired):
		advice = `the server wants TLS: write "tls://..." in servers, and tls_ca, in [fleet]`
	case errors.Is(err, nats.ErrSecureConnWanted):
		advice = `the server has no TLS: write "nats://..." in servers of [fleet]`
	case errors.As(err, new(*tls.CertificateVerificationError)):
		advice = "the server's certificate is not trusted: check tls_ca in [fleet], and the name in the certificate"
	default:
		return err
	}
	return fmt.Errorf("%w: %s", err, advice)
}

// explained adds to an error what the credentials do not permit, which is often its reason.
func (m *link) explained(err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.denied) == 0 {
		return err
	}
	return fmt.Errorf("%w: the credentials do not permit %s", err, strings.Join(slices.Sorted(maps.Keys(m.denied)), ", "))
}

// asyncError gets errors that belong to no call.
func (m *link) asyncError(_ *nats.Conn, _ *nats.Subscription, err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		m.log.Debug("error of the connection to the fleet", "error", err)
		return
	}
	// nats: permissions violation: Permissions Violation for Publish to "$KV.spamgate-lists.…"
	_, subject, _ := strings.Cut(err.Error(), `"`)
	subject = strings.Trim(subject, `"`)
	parts := strings.SplitN(subject, ".", 3)
	what := strings.Join(parts[:min(2, len(parts))], ".")
	m.mu.Lock()
	defer m.mu.Unlock()
	asks := subject == "$JS.API.STREAM.INFO.KV_"+bucketLists // the first that it needs
	if asks || what == "$KV."+bucketLists || what == "$O."+bucketContent {
		if m.readOnly == nil {
			m.log.Info("this gate only reads: its credentials permit no changes", "name", m.o.Name)
		}
		m.readOnly, m.asks = err, m.asks || asks
		m.notify()
		if asks || subject == "$KV."+bucketLists+"."+probeKey {
			return
		}
	}
	if !m.denied[what] {
		m.denied[what] = true
		m.log.Warn("the credentials do not permit what a gate does in the fleet", "error", err)
	}
}

// reach waits until the buckets can be used, if they could be lately; else they are nil. Of a gate that
// only reads they are there beside an ErrReadOnly.
func (m *link) reach(ctx context.Context) (*buckets, error) {
	var b *buckets
	var readOnly error
	usable := false
	err := m.wait(ctx, func() bool {
		b, readOnly = m.buckets, m.mayOnlyRead()
		usable = b != nil && m.isLinked()
		return usable || !m.down.IsZero() && time.Since(m.down) > m.o.times.edit
	})
	if err == nil && !usable {
		err = errDown
	}
	if err != nil {
		return nil, m.offline(err)
	}
	if readOnly != nil {
		return b, fmt.Errorf("%w: %w", ErrReadOnly, readOnly)
	}
	return b, nil
}

// errDown says that the fleet could not be used for a while; the reason is in link.trouble.
var errDown = errors.New("no server has answered for a while")

// offline returns the error of what the fleet did not answer.
func (m *link) offline(err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case errors.Is(err, ErrClosed):
		return err
	case m.readOnly != nil:
		return fmt.Errorf("%w: %w", ErrReadOnly, m.readOnly)
	case m.reason() != nil:
		return fmt.Errorf("%w: %w", ErrOffline, m.reason())
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout), errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrNoStreamResponse):
		return fmt.Errorf("%w: the servers do not answer in time, perhaps because most of them are down: %w", ErrOffline, err)
	}
	return fmt.Errorf("%w: %w", ErrOffline, err)
}
