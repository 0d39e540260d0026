package admin

import "time"

// Where a Status comes from.
const (
	FromGate = "gate" // a running one
	FromDisk = "disk" // no gate is running, or it cannot be asked: the files were read
)

// Status is the state of a gate, or what one would start with.
type Status struct {
	From string    `json:"from"` // FromGate or FromDisk
	Time time.Time `json:"time"`

	// Unasked says why a gate could not be asked; with FromDisk and empty none is
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

	// What lookups have met since the start; nil where no gate is running, and
	// FalseMaybes also where nothing confirms the filter.
	Lookups     *uint64 `json:"lookups,omitempty"`
	Maybes      *uint64 `json:"maybes,omitempty"`
	FalseMaybes *uint64 `json:"false_maybes,omitempty"`

	NextHops []NextHop `json:"next_hops,omitempty"`
}

// Filter is the filter in front of the lists.
type Filter struct {
	Kind      string  `json:"kind"`
	Family    string  `json:"family"`
	Bits      uint64  `json:"bits"`
	Hashes    int     `json:"hashes"`
	FillRatio float64 `json:"fill_ratio"`
	FPR       float64 `json:"fpr"` // that follows from the fill ratio
	Capacity  float64 `json:"capacity"`
	Bytes     uint64  `json:"bytes"`
	Warning   string  `json:"warning,omitempty"`
}

// List is one list as it serves.
type List struct {
	Name         string `json:"name"`
	Type         string `json:"type"`
	Action       string `json:"action,omitempty"`
	HeaderAction string `json:"header_action,omitempty"` // where it differs
	Path         string `json:"path,omitempty"`          // as configured
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
	Protected   int `json:"protected"` // left out, since they cover a protected name

	Problems []Problem `json:"problems,omitempty"` // the first ones
	Notes    []string  `json:"notes,omitempty"`

	Loaded     *time.Time `json:"loaded,omitempty"`      // when what serves was read; nil: nothing serves
	NextExpiry *time.Time `json:"next_expiry,omitempty"` // of an entry

	// Error says why what is on disk does not serve, LastGood that an earlier
	// version does in its place, Held that what is on disk can be read and looks
	// wrong, and Acceptable that accepting it lets it in.
	Error      string     `json:"error,omitempty"`
	ErrorSince *time.Time `json:"error_since,omitempty"`
	LastGood   bool       `json:"last_good,omitempty"`
	Held       bool       `json:"held,omitempty"`
	Acceptable bool       `json:"acceptable,omitempty"`

	// HitsToday counts matches since midnight UTC; nil where nobody knows.
	HitsToday *uint64 `json:"hits_today,omitempty"`

	// FillRatio and FPR are those of the filter if it held this list alone.
	FillRatio float64 `json:"fill_ratio"`
	FPR       float64 `json:"fpr"`

	IndexBytes int64 `json:"index_bytes"`

	Fetch *Fetch `json:"fetch,omitempty"` // of a list with a URL
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

// Fetch is how a list's URL was read.
type Fetch struct {
	LastTry  *time.Time `json:"last_try,omitempty"`
	LastGood *time.Time `json:"last_good,omitempty"`
	NextTry  *time.Time `json:"next_try,omitempty"`
	Failures int        `json:"failures,omitempty"`    // in a row
	Replaced bool       `json:"rolled_back,omitempty"` // the copy is an earlier version than the server's
	Error    string     `json:"error,omitempty"`
}

// NextHop is where mail goes.
type NextHop struct {
	Address string `json:"address"`
	Up      *bool  `json:"up,omitempty"` // nil where it was not asked
}

// Generation numbers the state of the lists.
type Generation struct {
	Generation uint64 `json:"generation"`
}

// Rescanned is what came of looking at the files.
type Rescanned struct {
	Generation uint64 `json:"generation"`

	// Failed are the lists of which what is on disk does not serve.
	Failed []Failed `json:"failed,omitempty"`
}

// Failed is a list that does not serve what is on disk.
type Failed struct {
	List  string `json:"list"`
	Error string `json:"error"`
	Held  bool   `json:"held,omitempty"`
}

// AcceptRequest asks to take a list's content though it looks wrong.
type AcceptRequest struct {
	// SHA256 is what blocklist.ContentSum says of the content, which need not be
	// on disk yet. Empty: what is held now.
	SHA256 string `json:"sha256,omitempty"`

	// Why is for the log, and so is SudoUser: who has become the caller.
	Why      string `json:"why,omitempty"`
	SudoUser string `json:"sudo_user,omitempty"`
}

// Accepted is the answer to it.
type Accepted struct {
	Generation uint64 `json:"generation"`
	Entries    int    `json:"entries"` // that the list now serves
	Before     int    `json:"before"`  // that it served until then
}

// UnusedHeader comes before the entries that have not matched.
type UnusedHeader struct {
	List  string `json:"list"`
	Since string `json:"since"` // a day, UTC

	// Known is the first day from which all matches are known. Where that is
	// after Since, some of the entries may have matched.
	Known string `json:"known"`
}

// UnusedEntry is an entry that has not matched.
type UnusedEntry struct {
	Entry     string `json:"entry"`
	Exception bool   `json:"exception,omitempty"`
	File      string `json:"file"`
	Line      int    `json:"line"`
	Last      string `json:"last,omitempty"` // the day of its last match, if that is known
}

// UnusedEnd comes behind them: without it the answer was cut short.
type UnusedEnd struct {
	End     bool   `json:"end"`
	Unused  uint64 `json:"unused"`
	Entries uint64 `json:"entries"` // that the list has
	Error   string `json:"error,omitempty"`
}

// AuditRecord is a change that a command has made, to be noted by a gate because
// the command may not write the audit log. Who asks is for the gate to see.
type AuditRecord struct {
	SudoUser string `json:"sudo_user,omitempty"` // as the command says
	Command  string `json:"command"`
	List     string `json:"list"`
	File     string `json:"file,omitempty"`
	What     string `json:"what"`
	Why      string `json:"why,omitempty"`
}
