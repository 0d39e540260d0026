package admin

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"time"

	"spamgate/internal/managed"
	"spamgate/internal/text"
)

// Sources of a Status.
const (
	FromGate = "gate" // a running gate
	FromDisk = "disk" // the files, since no gate is running or answers
)

// Status is the state of a running gate, or the state in which one would start.
type Status struct {
	From string    `json:"from"` // FromGate or FromDisk
	Time time.Time `json:"time"`

	// Unasked says why a gate could not be queried; empty with FromDisk: none is
	// running.
	Unasked string `json:"unasked,omitempty"`

	// Of a running gate.
	Version string     `json:"version,omitempty"`
	PID     int        `json:"pid,omitempty"`
	Config  string     `json:"config,omitempty"`
	Started *time.Time `json:"started,omitempty"`

	Generation uint64 `json:"generation,omitempty"`
	Filter     Filter `json:"filter"`
	Lists      []List `json:"lists"`

	// Counters since the start; nil if no gate is running. FalseMaybes is also nil
	// if the gate does not confirm matches of the filter.
	Lookups     *uint64 `json:"lookups,omitempty"`
	Maybes      *uint64 `json:"maybes,omitempty"`
	FalseMaybes *uint64 `json:"false_maybes,omitempty"`

	NextHops []NextHop `json:"next_hops,omitempty"`

	// Doors are the open doors beside the listeners.
	Doors []Door `json:"doors,omitempty"`

	// Recipients are the files with recipient domains and valid recipients.
	Recipients []RecipientFile `json:"recipients,omitempty"`

	// Decisions is the state of the history of decisions; nil: it is off, or no gate is
	// running.
	Decisions *Decisions `json:"decisions,omitempty"`
}

// Decisions is the state of the history of decisions.
type Decisions struct {
	Keep     int64  `json:"keep_seconds"` // as configured
	MaxBytes int64  `json:"max_bytes"`
	Record   string `json:"record"`

	// Since the start: decisions that were written, that were counted in an equal one, and
	// that were lost. Queued ones wait.
	Rows    int64 `json:"rows"`
	Merged  int64 `json:"merged"`
	Dropped int64 `json:"dropped"`
	Queued  int   `json:"queued"`

	Bytes int64      `json:"bytes"` // of the files
	Files int        `json:"files"`
	Reach *time.Time `json:"reaches_back_to,omitempty"` // nil: it is empty

	// Short says that rows had to be removed that are younger than Keep, since the files were
	// full.
	Short bool `json:"short,omitempty"`

	// Error says why the history stands still; mail does not need it.
	Error string `json:"error,omitempty"`
}

// Door is an open door, where mail servers and other programs ask about senders.
type Door struct {
	Door    string `json:"door"` // "policy_service", "milter" or "dns"
	Name    string `json:"name"`
	Address string `json:"address"` // "host:port" or "unix:path"
}

// RecipientFile is the state of a file with recipients.
type RecipientFile struct {
	Name     string     `json:"name"` // "recipient_domains", "valid_recipients", or that of a recipient policy
	Path     string     `json:"path"`
	Entries  int        `json:"entries"`
	Invalid  int        `json:"invalid"`            // lines
	Problem  *Problem   `json:"problem,omitempty"`  // the first invalid line
	Loaded   *time.Time `json:"loaded,omitempty"`   // when the version in use was read
	Modified *time.Time `json:"modified,omitempty"` // when it was changed

	// Error says why the version on disk is not live; an earlier one is. Acceptable:
	// accepting it makes it live.
	Error      string     `json:"error,omitempty"`
	ErrorSince *time.Time `json:"error_since,omitempty"`
	Acceptable bool       `json:"acceptable,omitempty"`
}

// Filter describes the filter before the lists.
type Filter struct {
	Kind      string  `json:"kind"`
	Family    string  `json:"family"`
	Bits      uint64  `json:"bits"`
	Hashes    int     `json:"hashes"`
	FillRatio float64 `json:"fill_ratio"`
	FPR       Rate    `json:"fpr"` // to be expected, see blocklist.SetStats
	Capacity  float64 `json:"capacity"`
	Bytes     uint64  `json:"bytes"`
	Warning   string  `json:"warning,omitempty"`
}

// List is the state of one list.
type List struct {
	Name         string `json:"name"`
	Type         string `json:"type"`
	Action       string `json:"action,omitempty"`
	HeaderAction string `json:"header_action,omitempty"` // if different
	PerRecipient bool   `json:"per_recipient,omitempty"`
	ProvenBy     string `json:"proven_by,omitempty"` // "spf,dkim": one of them
	Managed      bool   `json:"managed,omitempty"`
	Default      bool   `json:"default,omitempty"`
	Path         string `json:"path,omitempty"` // as configured
	URL          string `json:"url,omitempty"`
	Format       string `json:"format"`
	Packed       string `json:"packed,omitempty"` // "gzip", "zstd"
	Files        []File `json:"files"`

	Entries     int `json:"entries"`
	Exceptions  int `json:"exceptions"`
	Duplicates  int `json:"duplicates"`
	Invalid     int `json:"invalid"`
	Unsupported int `json:"unsupported"`
	Expired     int `json:"expired"`
	Protected   int `json:"protected"`  // left out, since they cover a protected domain or names below it
	Disallowed  int `json:"disallowed"` // left out, since a list from a URL may not have them: <> and name@

	// ListsNobody says why nobody is listed although the files have lines.
	ListsNobody string `json:"lists_nobody,omitempty"`

	Problems []Problem `json:"problems,omitempty"` // the first ones
	Notes    []string  `json:"notes,omitempty"`

	Loaded     *time.Time `json:"loaded,omitempty"`      // when the live version was read; nil: there is none
	NextExpiry *time.Time `json:"next_expiry,omitempty"` // of an entry

	// Error says why the version on disk is not live. LastGood: an earlier version
	// is. Held: the version on disk is readable but looks wrong. Acceptable:
	// accepting it makes it live.
	Error      string     `json:"error,omitempty"`
	ErrorSince *time.Time `json:"error_since,omitempty"`
	LastGood   bool       `json:"last_good,omitempty"`
	Held       bool       `json:"held,omitempty"`
	Acceptable bool       `json:"acceptable,omitempty"`

	// Pinned says that the list serves one version, whatever its files hold; nil: it
	// is not pinned.
	Pinned *Pinned `json:"pinned,omitempty"`

	// HitsToday counts matches since midnight UTC; nil: unknown.
	HitsToday *uint64 `json:"hits_today,omitempty"`

	// FillRatio and FPR are those of a filter with this list alone, computed.
	FillRatio float64 `json:"fill_ratio"`
	FPR       Rate    `json:"fpr"`

	IndexBytes int64 `json:"index_bytes"`

	Fetch *Fetch `json:"fetch,omitempty"` // of a list with a URL

	Published *Published `json:"published,omitempty"` // of a list that others fetch from the gate

	// DNS describes a list in DNS, which has no entries here; nil: it is not one.
	DNS *DNSList `json:"dns,omitempty"`
}

// LeftOut returns how many lines of the list are not looked up although their time is not over.
func (l *List) LeftOut() int { return l.Invalid + l.Unsupported + l.Protected + l.Disallowed }

// DNSList is the state of a list in DNS. Only a running gate knows more than the zone.
type DNSList struct {
	Zone string `json:"zone"` // without a customer's key

	// State is "checking" before the first check has ended, "on", "broken" while the list
	// does not answer, or "off" if it does not pass its check. Broken and off lists are not
	// asked; Reason says why. Warning is about a list that is asked.
	State     string     `json:"state,omitempty"`
	Reason    string     `json:"reason,omitempty"`
	Warning   string     `json:"warning,omitempty"`
	Since     *time.Time `json:"since,omitempty"`
	Checked   *time.Time `json:"checked,omitempty"`
	NextCheck *time.Time `json:"next_check,omitempty"`

	// Questions were sent for mail, CacheHits needed none. The others count the domains of
	// messages by the answer: Unknown by the cause.
	Questions uint64            `json:"questions"`
	CacheHits uint64            `json:"cache_hits"`
	Listed    uint64            `json:"listed"`
	NotListed uint64            `json:"not_listed"`
	Unknown   map[string]uint64 `json:"unknown,omitempty"`
}

// Asked reports whether the gate asks the list.
func (d *DNSList) Asked() bool { return d.State == "on" || d.State == "checking" }

// Problem says why the list is not asked; "" if it is.
func (d *DNSList) Problem() string {
	switch {
	case d.State == "" || d.Asked():
		return ""
	case d.State == "off":
		return "switched off: " + d.Reason
	}
	return "not asked at the moment: " + d.Reason
}

// Pinned describes the pin of a list.
type Pinned struct {
	SHA256  string    `json:"sha256"` // the blocklist.ContentSum of the version
	Entries int       `json:"entries"`
	Since   time.Time `json:"since"`
	Who     string    `json:"who,omitempty"`
	Why     string    `json:"why,omitempty"`
}

// What returns what the audit log has of the pin.
func (p *Pinned) What() string {
	if p == nil {
		return "unpinned"
	}
	return fmt.Sprintf("pinned at content %s, %d entries", p.SHA256[:min(12, len(p.SHA256))], p.Entries)
}

// File is a file of a list.
type File struct {
	Path     string    `json:"path"`
	Bytes    int64     `json:"bytes"`
	Modified time.Time `json:"modified"`
	Entries  int       `json:"entries"`
	Invalid  int       `json:"invalid"`
}

// Problem is a line that is no entry.
type Problem struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text"`
	What string `json:"what"`
	Hint string `json:"hint,omitempty"`
}

// Fetch describes the fetches of a list's URL.
type Fetch struct {
	LastTry  *time.Time `json:"last_try,omitempty"`
	LastGood *time.Time `json:"last_good,omitempty"`
	NextTry  *time.Time `json:"next_try,omitempty"`
	Failures int        `json:"failures,omitempty"`    // in a row
	Replaced bool       `json:"rolled_back,omitempty"` // the copy is older than the server's version
	Error    string     `json:"error,omitempty"`

	Sequence int64      `json:"sequence,omitempty"` // of the copy's signature, if it has one
	Expires  *time.Time `json:"expires,omitempty"`  // the copy's signature, if it does
}

// Published describes the version of a list that others fetch.
type Published struct {
	Sequence int64      `json:"sequence,omitempty"` // 0: there is no version yet
	Signed   *time.Time `json:"signed,omitempty"`
	Expires  *time.Time `json:"expires,omitempty"`
	Error    string     `json:"error,omitempty"` // why that is not the version that serves here
}

// NextHop is one next hop.
type NextHop struct {
	Address string `json:"address"`
	Up      *bool  `json:"up,omitempty"` // nil: not known

	// As in NextHopHealth.
	Recipients        int `json:"recipients"`
	RecipientsRefused int `json:"recipients_refused"`

	// Listeners are those whose mail goes there; nil: all.
	Listeners []string `json:"listeners,omitempty"`
}

// Generation numbers the state of the lists.
type Generation struct {
	Generation uint64 `json:"generation"`
}

// Rescanned is the result of a rescan.
type Rescanned struct {
	Generation uint64 `json:"generation"`

	// Failed holds the lists whose version on disk is not live.
	Failed []Failed `json:"failed,omitempty"`
}

// Failed is a list whose version on disk is not live.
type Failed struct {
	List  string `json:"list"`
	Error string `json:"error"`
	Held  bool   `json:"held,omitempty"`

	// Pinned says that the version on disk is held for no other reason than that the
	// list is pinned.
	Pinned bool `json:"pinned,omitempty"`
}

// Caller is what a command says of who runs it.
type Caller struct {
	SudoUser string `json:"sudo_user,omitempty"` // the user before sudo
}

// fill sets what is true of this process.
func (c *Caller) fill() { c.SudoUser = os.Getenv("SUDO_USER") }

// AcceptRequest asks the gate to accept content of a list that looks wrong.
type AcceptRequest struct {
	// SHA256 is the blocklist.ContentSum of the content, which need not be on disk
	// yet. Empty: the held content.
	SHA256 string `json:"sha256,omitempty"`

	Why string `json:"why,omitempty"` // for the log
	Caller
}

// Accepted is the result of an AcceptRequest.
type Accepted struct {
	Generation uint64 `json:"generation"`
	Entries    int    `json:"entries"` // of the live version
	Before     int    `json:"before"`  // of the version before
}

// What returns what the audit log has of it.
func (a Accepted) What() string {
	return "accepted the update that was held, " + text.Count(a.Entries, "entry", "entries") + "; " + text.Number(a.Before) + " before"
}

// PinRequest asks the gate to pin a list.
type PinRequest struct {
	// SHA256 is the blocklist.ContentSum of a version in the history, and Entries how
	// many it has. Empty: the live version.
	SHA256  string `json:"sha256,omitempty"`
	Entries int    `json:"entries,omitempty"`

	Why string `json:"why,omitempty"` // for the log
	Caller
}

// UnpinRequest asks the gate to unpin a list.
type UnpinRequest struct {
	Why string `json:"why,omitempty"`
	Caller
}

// PinResult is the result of a PinRequest or an UnpinRequest.
type PinResult struct {
	Generation uint64  `json:"generation"`
	Entries    int     `json:"entries"`          // of the live version
	Before     int     `json:"before"`           // of the version before
	Pinned     *Pinned `json:"pinned,omitempty"` // nil: it is unpinned
	Error      string  `json:"error,omitempty"`  // why the version on disk is not live
}

// UnusedHeader precedes the unused entries.
type UnusedHeader struct {
	List  string `json:"list"`
	Since string `json:"since"` // a day, UTC

	// Known is the first day since which all matches are known. If it is after
	// Since, some of the entries may have matched.
	Known string `json:"known"`

	// Fleet says which other gates were asked for matches; nil: none was, since the list is
	// not shared, or only this gate's matches were asked for.
	Fleet *UnusedFleet `json:"fleet,omitempty"`
}

// UnusedEntry is an entry without matches.
type UnusedEntry struct {
	Entry     string `json:"entry"`
	Exception bool   `json:"exception,omitempty"`
	File      string `json:"file"`
	Line      int    `json:"line"`
	Last      string `json:"last,omitempty"` // the day of its last match, if known
}

// UnusedEnd follows the unused entries: without it the response is incomplete.
type UnusedEnd struct {
	End     bool   `json:"end"`
	Unused  uint64 `json:"unused"`
	Entries uint64 `json:"entries"` // of the list
	Error   string `json:"error,omitempty"`
}

// AddRequest asks the gate to add entries to a managed list.
type AddRequest struct {
	Entries []managed.NewEntry `json:"entries"`
	managed.Options
	Caller
}

// RemoveRequest asks the gate to remove entries from a managed list.
type RemoveRequest struct {
	Entries []managed.Name `json:"entries"`
	managed.Options
	Caller
}

// RollbackRequest asks the gate to put a version of a managed list back.
type RollbackRequest struct {
	Version string `json:"version"`
	managed.Options
	Caller
}

// UndoRequest asks the gate to undo a change of a managed list.
type UndoRequest struct {
	Change string `json:"change"` // its ID
	managed.Options
	Caller
}

// MaxHandover is the longest time that a handover may take.
const MaxHandover = 24 * time.Hour

// HandoverRequest asks the gate to start its program file again and hand over to that
// process.
type HandoverRequest struct {
	// TimeoutSeconds bounds the time until the new process serves; 0: 5 minutes.
	TimeoutSeconds float64 `json:"timeout_seconds,omitempty"`
}

// HandedOver is the result of a HandoverRequest.
type HandedOver struct {
	Old     Process `json:"old"`
	New     Process `json:"new"`     // the gate does not know its version, its status does
	Seconds float64 `json:"seconds"` // until the new process served

	// Sessions counts the connections of clients that are open in the old process. It
	// ends after them, and within EndsWithin unless the next hop owes it a reply.
	Sessions   int64   `json:"sessions_open"`
	EndsWithin float64 `json:"ends_within_seconds"`
}

// Process is the process of a gate.
type Process struct {
	PID     int    `json:"pid"`
	Version string `json:"version,omitempty"`
}

// AuditRecord is a change by a command that may not write the audit log itself. The
// gate adds the caller.
type AuditRecord struct {
	SudoUser string `json:"sudo_user,omitempty"` // as reported by the command
	Command  string `json:"command"`
	List     string `json:"list"`
	File     string `json:"file,omitempty"`
	What     string `json:"what"`
	Why      string `json:"why,omitempty"`
}

// Rate is a false positive rate. In JSON it is null if it cannot be predicted, which is
// not a number (NaN) in Go.
type Rate float64

// MarshalJSON implements [json.Marshaler].
func (r Rate) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(r)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(r))
}

// UnmarshalJSON implements [json.Unmarshaler].
func (r *Rate) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*r = Rate(math.NaN())
		return nil
	}
	return json.Unmarshal(text, (*float64)(r))
}
