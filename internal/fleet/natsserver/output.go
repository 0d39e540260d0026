package natsserver

import (
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// output writes the log of the NATS server into ours. Strangers at the port can make it write, so
// that it is bounded.
type output struct {
	log         *slog.Logger
	now         func() time.Time
	credentials string // the path of the file; empty: not known

	mu         sync.Mutex
	begin      time.Time       // of the current minute
	lines      int             // in this minute
	texts      map[string]bool // of these lines
	suppressed int
	problem    string // the last one
	end        error
}

// maxLines bounds the lines in a minute.
const maxLines = 20

func newOutput(log *slog.Logger) *output { return &output{log: log, now: time.Now} }

// Noticef and the others implement server.Logger.
func (o *output) Noticef(format string, v ...any) {
	o.log.Debug("server of the fleet", "text", fmt.Sprintf(format, v...))
}

func (o *output) Debugf(string, ...any) {}
func (o *output) Tracef(string, ...any) {}

func (o *output) Warnf(format string, v ...any)  { o.write(fmt.Sprintf(format, v...)) }
func (o *output) Errorf(format string, v ...any) { o.write(fmt.Sprintf(format, v...)) }

// Fatalf must not end the process: whoever starts the server gets the error.
func (o *output) Fatalf(format string, v ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.end == nil {
		o.end = fmt.Errorf(format, v...)
	}
}

// fatal returns why the server has ended.
func (o *output) fatal() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.end
}

// last returns the last problem.
func (o *output) last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.problem
}

// usual are parts of texts of each start and of catching up after it, also if the process was killed:
// the servers try again until they are equal. Until then the log says which servers are missing.
var usual = []string{
	"Waiting for routing to be established", "JetStream has not established contact with a meta leader", " is not current: ",
	"JetStream is not current with the meta leader", "JetStream is still recovering meta layer",
	"Metalayer blocking snapshot", "resetting first sequence", "will rebuild", "Recovering stream state from index errored",
	"' stalled", "' errored, will retry: ", "' was aborted on the remote due to: ", // Catchup for stream '...'
	" index: no message found", "Request from follower for entry at index [", "Could not find a starting entry for catchup request",
	"Expected first catchup entry to be a snapshot", "Canceling catchup for ", "alling behind in health check", "no longer falling behind",
	"Detected another leader with higher term, will stepdown",
}

// left matches what the server says of a client that has only looked whether the port is open, as gates do.
var left = regexp.MustCompile(` - cid:\d+ - TLS handshake error: (EOF|.*connection reset by peer)$`)

// byReader matches what the server says when a gate with the read-only credentials of the fleet tries
// what these do not permit. Nobody else has restricted permissions, see restrict.
var byReader = regexp.MustCompile(` - "[^"\\]*/(user:reader|nkey:U[A-Z2-7]+)" - (Publish|Subscription) Violation - `)

// isUsual reports whether a text says nothing that is wrong with the server.
func isUsual(text string) bool {
	return left.MatchString(text) || byReader.MatchString(text) || slices.ContainsFunc(usual, func(u string) bool { return strings.Contains(text, u) })
}

// attempt is in the text of each attempt to connect.
var attempt = regexp.MustCompile(` \(attempt \d+\)`)

func (o *output) write(text string) {
	if isUsual(text) {
		o.Noticef("%s", text)
		return
	}
	text = attempt.ReplaceAllString(text, "")
	hint := hint(text)
	if o.credentials != "" {
		hint = strings.ReplaceAll(hint, credentialsFile, o.credentials)
	}
	o.mu.Lock()
	now := o.now()
	o.problem = text
	if now.Sub(o.begin) >= time.Minute {
		o.begin, o.lines, o.texts = now, 0, map[string]bool{}
	}
	o.lines++
	same := o.texts[text]
	if o.lines <= maxLines {
		o.texts[text] = true
	}
	if same || o.lines > maxLines {
		o.suppressed++
		o.mu.Unlock()
		return
	}
	attrs := []any{"text", text}
	if hint != "" {
		attrs = append(attrs, "hint", hint)
	}
	if o.suppressed > 0 {
		attrs = append(attrs, "suppressed", o.suppressed)
		o.suppressed = 0
	}
	o.mu.Unlock()
	o.log.Warn("server of the fleet has a problem", attrs...)
}

const damaged = "the store is damaged: stop this server, remove the directory, and start it: it gets everything from the others"

// credentialsFile stands in a hint for the path of the file.
const credentialsFile = "the file of [fleet] credentials"

// hints say what is wrong if the server's log has all of some texts.
var hints = []struct {
	texts []string
	hint  string
}{
	{[]string{"TLS route handshake error", "tls:"}, "another server has other credentials than this one, or does not belong to the fleet: copy " + credentialsFile + " from a server that works to the one that does not, and restart that"},
	{[]string{"connect to route"}, "another server does not run, or not at this address: see routes in [fleet.server]"},
	{[]string{"authentication error"}, "a client has other credentials than this server"},
	{[]string{"duplicate name"}, "two servers have one name: give each its own name in [fleet]"},
	{[]string{"JetStream out of"}, "the disk is full: make room"},
	{[]string{"corrupt"}, damaged},
	{[]string{"checksums do not match"}, damaged},
	{[]string{"permission denied"}, "this user may not write to the store"},
}

// hint returns what to do about a text, if that is known.
func hint(text string) string {
	for _, h := range hints {
		if !slices.ContainsFunc(h.texts, func(t string) bool { return !strings.Contains(text, t) }) {
			return h.hint
		}
	}
	return ""
}
