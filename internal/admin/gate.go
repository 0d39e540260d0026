package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Gate is what the socket speaks for. Its methods are called by several
// goroutines at once.
type Gate interface {
	Status() Status
	Generation() uint64

	// Rescan looks at all list files. Lists that do not serve what is on disk
	// are no error, but stand in what it returns.
	Rescan(context.Context) (Rescanned, error)

	// Accept takes a list's content in; see AcceptRequest.
	Accept(ctx context.Context, list, sha256 string) (Accepted, error)

	// Unused calls begin, and then each for the entries of a list that have not
	// matched since a day. An error of either ends it, and is returned.
	Unused(ctx context.Context, list string, since time.Time, begin func(UnusedHeader) error, each func(UnusedEntry) error) (UnusedEnd, error)

	// Audit writes to the audit log.
	Audit(Peer, AuditRecord) error
}

// Why a Gate cannot do what it was asked for. Use errors.Is, also on what a
// Client returns.
var (
	ErrNoList      = errors.New("there is no such list")
	ErrNothingHeld = errors.New("nothing is held")
	ErrRequest     = errors.New("not to be understood")
)

// ErrNotRunning says that no gate answers on a socket.
var ErrNotRunning = errors.New("no gate is running")

// UnreachableError says that a socket cannot be asked, so that nobody knows
// whether a gate runs.
type UnreachableError struct {
	Socket string
	Err    error // why, without the path
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("a gate cannot be asked at %s (%v)", e.Socket, e.Err)
}

// Unwrap is the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Peer is who has called, as the kernel knows.
type Peer struct {
	Known bool // the kernel has said
	UID   int
	PID   int
}

// LogValue is the peer in a log record.
func (p Peer) LogValue() slog.Value {
	if !p.Known {
		return slog.StringValue("unknown")
	}
	return slog.GroupValue(slog.Int("uid", p.UID), slog.Int("pid", p.PID))
}

// codes are the names of errors on the wire, with their HTTP status.
var codes = []struct {
	err    error
	code   string
	status int
}{
	{ErrNoList, "no_list", 404},
	{ErrNothingHeld, "nothing_held", 409},
	{ErrRequest, "bad_request", 400},
	{ErrNotRunning, "ending", 503},
}
