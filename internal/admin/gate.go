package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"spamgate/internal/accounts"
	"spamgate/internal/decisions"
	"spamgate/internal/fleet"
	"spamgate/internal/managed"
)

// Gate executes the requests. Several goroutines call its methods at once.
type Gate interface {
	Status() Status
	Generation() uint64

	// Health says whether the gate works. It asks next hops that were not reached
	// lately, for some seconds at most.
	Health(context.Context) Health

	// Ready returns why mail cannot pass, as far as is known, or nil, and warnings about
	// next hops.
	Ready() (warnings []string, err error)

	// Rescan checks all list files. Lists whose version on disk is not live are not
	// an error, but part of the result.
	Rescan(context.Context) (Rescanned, error)

	// Accept accepts content of a list, see AcceptRequest. Pin pins a list, and Unpin unpins
	// it. They record in the audit log what they have done.
	Accept(ctx context.Context, by managed.By, list string, r AcceptRequest) (Accepted, error)
	Pin(ctx context.Context, by managed.By, list string, r PinRequest) (PinResult, error)
	Unpin(ctx context.Context, by managed.By, list string, r UnpinRequest) (PinResult, error)

	// Unused calls begin, then each for every entry of a list without matches since
	// a day: on all gates if a fleet shares the list, unless here is set. It returns their
	// first error, and ErrNotAsked if the others cannot be asked.
	Unused(ctx context.Context, list string, since time.Time, here bool, begin func(UnusedHeader) error, each func(UnusedEntry) error) (UnusedEnd, error)

	// Handover starts the program file again and waits until the new process has taken
	// over. If it does not within the limit, or before the context ends, the new process
	// is killed, and the gate continues.
	Handover(ctx context.Context, limit time.Duration) (HandedOver, error)

	// Audit writes to the audit log.
	Audit(managed.By, AuditRecord) error
}

// The reasons why a request fails. Use errors.Is, also for errors from a Client.
var (
	ErrNoList      = managed.ErrNoList
	ErrNothingHeld = errors.New("nothing is held")
	ErrNotPinned   = errors.New("the list is not pinned")
	ErrRequest     = errors.New("invalid request")
	ErrOwner       = errors.New("only root and the gate's own user may change the accounts")

	ErrHandingOver   = errors.New("the gate is already handing over")
	ErrNotHandedOver = errors.New("not handed over, the running gate goes on")
)

// ErrNotAsked says that the other gates of a fleet could not be asked.
var ErrNotAsked = errors.New("the other gates of the fleet cannot be asked")

// ErrNoFleet says that a gate is in no fleet.
var ErrNoFleet = errors.New("this gate is in no fleet: [fleet] in its configuration names no servers")

// ErrNotRunning says that no gate answers on a socket.
var ErrNotRunning = errors.New("no gate is running")

// ErrStarting says that the gate waits for the first version of its fleet's lists.
var ErrStarting = errors.New("the gate is starting, and waits for the lists of its fleet: try again in half a minute")

// UnreachableError says that the socket does not tell whether a gate is running.
type UnreachableError struct {
	Socket string
	Err    error // why, without the path
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("cannot query a gate at %s (%v)", e.Socket, e.Err)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Peer is the caller, as reported by the kernel.
type Peer struct {
	Known bool // the kernel reported the others
	UID   int
	PID   int
}

// LogValue returns the peer for a log record.
func (p Peer) LogValue() slog.Value {
	if !p.Known {
		return slog.StringValue("unknown")
	}
	return slog.GroupValue(slog.Int("uid", p.UID), slog.Int("pid", p.PID))
}

// codes maps errors to their codes in responses and their HTTP status.
var codes = []struct {
	err    error
	code   string
	status int
}{
	{ErrNoList, "no_list", 404},
	{ErrNothingHeld, "nothing_held", 409},
	{ErrNotPinned, "not_pinned", 409},
	{ErrRequest, "bad_request", 400},
	{ErrOwner, "not_owner", 403},
	{accounts.ErrExists, "account_exists", 409},
	{accounts.ErrNoAccount, "no_account", 404},
	{accounts.ErrNoAdmin, "no_admin", 409},
	{accounts.ErrPassword, "bad_password", 400},
	{accounts.ErrHereOnly, "ended_here_only", 503},
	{decisions.ErrCursor, "bad_place", 400},
	{managed.ErrCursor, "bad_place", 400},
	{ErrHandingOver, "handing_over", 409},
	{ErrNotHandedOver, "not_handed_over", 500},
	{ErrNotRunning, "ending", 503},
	{ErrStarting, "starting", 503},
	{managed.ErrNotManaged, "not_managed", 409},
	{managed.ErrEntry, "invalid_entry", 400},
	{managed.ErrProtected, "protected", 409},
	{managed.ErrCancelled, "cancelled", 409},
	{managed.ErrConflict, "conflict", 409},
	{managed.ErrNotListed, "not_listed", 404},
	{managed.ErrNoChange, "no_change", 404},
	{managed.ErrNoVersion, "no_version", 404},
	{managed.ErrUndone, "undone", 409},
	{managed.ErrMissing, "missing", 409},
	{managed.ErrTooLarge, "too_large", 413},
	{ErrNotAsked, "fleet_not_asked", 503},
	{ErrNoFleet, "no_fleet", 409},
	{managed.ErrNoFleet, "no_fleet", 409},
	{fleet.ErrClosed, "ending", 503},
	{fleet.ErrReadOnly, "fleet_read_only", 403},
	{fleet.ErrDiffers, "fleet_differs", 409},
	{fleet.ErrNotShared, "not_shared", 404},
	{fleet.ErrOffline, "fleet_offline", 503},
}
