package fleet

import (
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"spamgate/blocklist/listfile"
)

// Options say what a [Member] shares, and with whom.
type Options struct {
	Name    string // of this gate, unique in the fleet
	Version string // of the program

	Servers []string // URLs of NATS servers

	Credentials string      // the path of a file: see readCredentials; empty: none
	TLS         *tls.Config // nil: the system's authorities, where a server wants TLS

	StateDir string
	Lists    []List

	// Accept, if not nil, accepts a content of a list in advance, so that it is not held for
	// its size.
	Accept func(list string, sum [sha256.Size]byte) error

	// Accounts is the file of the List of the kind Accounts, if there is one.
	Accounts AccountsFile

	// Applied, if not nil, is called when the file of a list has another version.
	Applied func(list string, v *Version)

	// StateChanged, if not nil, gets a shared value that another gate has changed (see
	// [Member.SetState], which it must not call). If the error is ErrNotShared the gate does
	// not need the value; after another error it gets it again later.
	StateChanged func(key string, value json.RawMessage) error

	// FetchFails, if not nil, reports whether this gate has tried in vain to fetch a list: then
	// another one is to try.
	FetchFails func(list string) bool

	// FetchesChanged, if not nil, is called when [Member.Fetches] has another answer for a
	// list.
	FetchesChanged func(list string, fetches bool)

	// Report, if not nil, returns what other gates are to know of this one, such as its
	// health: at most 16 KiB.
	Report func() json.RawMessage

	Logger *slog.Logger // nil: no log

	// Edges are what a simulation puts in the place of the world around the gate; nil: nothing.
	Edges *Edges

	times times // tests shorten them
}

// Edges are the edges of a simulated world, of which one seed decides all.
type Edges struct {
	NATS  []nats.Option                       // added to those of the connection
	Pause func(d time.Duration) time.Duration // returns a pause of about d
	Ahead time.Duration                       // by which the gate's clock is wrong
}

// List is a file that the fleet shares.
type List struct {
	Name string
	Kind Kind

	// Path is the file, at or below StateDir. That of a fetched list may have its state
	// beside it (package fetch).
	Path string

	MaxBytes int64 // of the content

	Options listfile.Options // how its entries are read, unless it is the accounts
}

// times are how long this and that takes.
type times struct {
	resync   time.Duration // between two looks at all keys
	presence time.Duration // between two signs of life
	lease    time.Duration // a lease counts that long
	abstain  time.Duration // a member that cannot fetch a list leaves it to others that long
	clean    time.Duration // between two removals of contents that nobody needs
	orphan   time.Duration // a content that nobody needs is kept that long
	edit     time.Duration // an edit waits that long for the fleet, apart from its size
	grace    time.Duration // a gate that is new to a list waits that long before it publishes its own
	conflict time.Duration // an edit is tried again that long
	retry    time.Duration // the first pause after an error; later ones are longer
	ahead    time.Duration // by which this gate's clock is wrong
}

func (t times) withDefaults() times {
	def := func(d *time.Duration, value time.Duration) { *d = cmp.Or(*d, value) }
	def(&t.resync, 5*time.Second)
	def(&t.presence, 10*time.Second)
	def(&t.lease, 30*time.Second)
	def(&t.abstain, 5*time.Minute)
	def(&t.clean, 5*time.Minute)
	def(&t.orphan, time.Hour)
	def(&t.edit, 5*time.Second)
	def(&t.grace, 2*time.Second)
	def(&t.conflict, time.Minute)
	def(&t.retry, 500*time.Millisecond)
	return t
}

// Why the fleet does not take an edit. Use errors.Is.
var (
	// ErrOffline says that no server of the fleet answers, or none that has a quorum.
	ErrOffline = errors.New("the fleet cannot be reached")

	// ErrBehind says that the file is not the fleet's newest version: apply that and try
	// again ([Member.CatchUp]).
	ErrBehind = errors.New("another gate has changed the list meanwhile")

	// ErrDiffers says that the file has a content that the fleet has never had.
	ErrDiffers = errors.New("the list differs from the fleet's: spamgate fleet join decides which one counts")

	// ErrReadOnly says that the gate's credentials do not permit changes.
	ErrReadOnly = errors.New("the credentials of this gate only permit reading")

	// ErrNotShared says that a list does not belong to the fleet.
	ErrNotShared = errors.New("the list does not belong to the fleet")

	// ErrClosed is the error of a member that was closed.
	ErrClosed = errors.New("the gate has left the fleet, or is shutting down")
)

// Refused reports whether an error says that the fleet did not take an edit.
func Refused(err error) bool {
	for _, why := range []error{ErrOffline, ErrBehind, ErrDiffers, ErrReadOnly, ErrNotShared, ErrClosed} {
		if errors.Is(err, why) {
			return true
		}
	}
	return false
}
