// Package config reads spamgate's TOML configuration.
//
// [Load] reports everything that is wrong with a file at once, each fault with
// its line and with what to do about it. What it returns is checked and
// normalised, so that whoever wires the gate together converts values and
// decides nothing. Of the gate's other packages it knows the normal form of
// addresses alone.
//
// The meaning, unit and range of every key stand beside the key in the shipped
// config.toml; the comments here say what the loaded value looks like.
package config

import (
	"net/netip"
	"path/filepath"
	"time"
)

// Config is a whole configuration file. The toml tags are the names of the
// keys and tables.
type Config struct {
	// File is the path that was given to Load.
	File string `toml:"-"`

	// Warnings are what is accepted and is not as its author may think, such as
	// keys that have no effect any more; in the order of the file.
	Warnings []*Error `toml:"-"`

	// Hostname is what the gate calls itself in greetings and trace fields: a
	// domain name in lower case or an address literal. Load never leaves it
	// empty.
	Hostname string `toml:"hostname"`

	Listen Listen `toml:"listen"`

	// Listeners holds every place to listen on: [listen] first, unless there are
	// [[listener]] tables and it has no addr of its own, and then those tables,
	// each with [listen]'s value for what it does not set. After Load there is
	// one at least, and whoever opens ports needs no other.
	Listeners []Listener `toml:"listener"`

	NextHop NextHop `toml:"next_hop"`
	Filter  Filter  `toml:"filter"`
	State   State   `toml:"state"`
	Guard   Guard   `toml:"guard"`
	Admin   Admin   `toml:"admin"`
	Headers Headers `toml:"headers"`
	Policy  Policy  `toml:"policy"`
	Watch   Watch   `toml:"watch"`
	Log     Log     `toml:"log"`

	// Lists holds the [[list]] tables in the order of the file, which decides
	// between equally strict actions. Load accepts no configuration without
	// one.
	Lists []List `toml:"list"`
}

// Addresses is an array of strings that may be written as a single string.
type Addresses []string

// Filter says how the lists are searched.
type Filter struct {
	// Kind is "classic", "sharded", "sized", "counting", "fuse" or "auto".
	Kind string `toml:"kind"`

	// Family is the filter's hashes, as hashfamily.ParseSpec reads and writes
	// it: "classic" and its parts with every kind but "fuse", others with "sized"
	// and "counting" only. Where the file is silent it is "double" for those
	// two. With "fuse" it is empty.
	Family string `toml:"family"`

	// FPR is the false positive rate that a sized, counting or fuse filter is
	// made for; 1e-12 to 0.5, with "fuse" 2^-32 at least.
	FPR float64 `toml:"fpr"`

	// Entries is the number of entries that a filter, other than a classic or
	// fuse one, has room for at least, up to 10^10; 0: as many as the lists hold,
	// and some.
	Entries int64 `toml:"entries"`

	// CounterBits is the width of a counting filter's counters: 4, 8 or 16.
	CounterBits int64 `toml:"counter_bits"`

	// Confirm looks every maybe up in the exact index. False is accepted only
	// with exactly one block list and no allow list; that the list has no
	// exceptions is for whoever reads it to check.
	Confirm bool `toml:"confirm"`
}

// State says where the gate keeps what it must not lose.
type State struct {
	// Dir is an absolute path.
	Dir string `toml:"dir"`

	// History is how many earlier versions of each list are kept, to roll
	// back to; 0 to 100.
	History int64 `toml:"history"`
}

// Guard says whom no block list is to cover whole.
type Guard struct {
	// Protect holds domains in lower case with A-labels.
	Protect []string `toml:"protect"`

	// ProtectProviders adds the shipped names of large mail providers.
	ProtectProviders bool `toml:"protect_providers"`
}

// Admin says where the gate answers questions about itself.
type Admin struct {
	// Socket is an absolute path; empty: there is none.
	Socket string `toml:"socket"`

	// SocketGroup is the name or number of the socket's group; empty: that of
	// the process.
	SocketGroup string `toml:"socket_group"`

	// SocketMode is the socket's mode in octal digits. The owner can read and
	// write, strangers can nothing.
	SocketMode string `toml:"socket_mode"`

	// MetricsAddr is "host:port" for metrics over TCP; empty: none.
	MetricsAddr string `toml:"metrics_addr"`
}

// Headers says which header fields are judged.
type Headers struct {
	// Check holds names of header fields as they were written, none twice.
	// None: headers are not judged.
	Check []string `toml:"check"`

	// MaxBytes bounds the header section; 1,000 to 16,777,216.
	MaxBytes int64 `toml:"max_bytes"`

	// MaxAddresses bounds the sender addresses in a header; 100 to 10,000.
	MaxAddresses int64 `toml:"max_addresses"`

	// CheckBounces judges the headers of messages with the null reverse-path
	// too.
	CheckBounces bool `toml:"check_bounces"`
}

// Policy says what becomes of listed mail, and who is spared.
type Policy struct {
	// Mode is "enforce" or "monitor".
	Mode string `toml:"mode"`

	// RecipientDomains holds domains in lower case with A-labels:
	// "example.com" is that domain alone, ".example.com" it and every
	// subdomain. None: every recipient is taken.
	RecipientDomains []string `toml:"recipient_domains"`

	// ExemptRecipients holds "user@", "user@domain" and "@domain", case folded
	// and with A-labels.
	ExemptRecipients []string `toml:"exempt_recipients"`

	// ExemptClients holds masked prefixes, never IPv4-mapped IPv6.
	ExemptClients []netip.Prefix `toml:"exempt_clients"`

	// Contact is printable ASCII of at most 200 bytes, or empty.
	Contact string `toml:"contact"`

	// RejectText is the template of a refusal without its reply code, which
	// the gate puts in front. Its placeholders are {sender}, {list}, {reason},
	// {id} and {contact}; where the contact is empty, the "; " before its
	// placeholder goes with it.
	RejectText string `toml:"reject_text"`

	// AllowDiscard permits the action "discard".
	AllowDiscard bool `toml:"allow_discard"`
}

// Watch says how changes of the lists are noticed where the file system does
// not report them.
type Watch struct {
	// PollInterval is the time between two looks; 100 ms to 24 hours.
	PollInterval time.Duration `toml:"poll_interval"`
}

// Log says what is logged, how and where.
type Log struct {
	// Output is "stderr", "syslog", "journal", or "file:" with an absolute path.
	Output string `toml:"output"`

	// Format is "text" or "json".
	Format string `toml:"format"`

	// Level is "debug", "info", "warn" or "error".
	Level string `toml:"level"`

	// Addresses is "full", "domain" or "hash".
	Addresses string `toml:"addresses"`
}

// List is one [[list]] table.
type List struct {
	// Name is unique, and fit to be a file's: up to 100 letters, digits, ".", "_"
	// and "-".
	Name string `toml:"name"`

	// Path is absolute; it may be a glob (path/filepath.Match). Empty where
	// there is a URL.
	Path string `toml:"path"`

	// Copy is the absolute path of the file, no glob, that holds what was last
	// fetched from the URL; empty where there is none.
	Copy string `toml:"-"`

	// URL is where the list is fetched from, https or with AllowHTTP http;
	// empty where there is a Path.
	URL string `toml:"url"`

	// Refresh is the time between two fetches, 1 min to 30 days; Timeout how
	// long one may take, 1 s to 1 h.
	Refresh time.Duration `toml:"refresh"`
	Timeout time.Duration `toml:"timeout"`

	// PublicKey is a minisign public key; empty: no signature is asked for.
	// SignatureURL is where the signature is; empty: at URL with ".minisig"
	// behind it.
	PublicKey    string `toml:"public_key"`
	SignatureURL string `toml:"signature_url"`

	// AllowHTTP permits a URL without TLS.
	AllowHTTP bool `toml:"allow_http"`

	// TLSCA is the absolute path of a PEM file with the authorities to trust for
	// the URLs; "": the system's. Whether the file is there is not checked.
	TLSCA string `toml:"tls_ca"`

	// Format is a format of package listfile, or "auto".
	Format string `toml:"format"`

	// Column is the name or number (from 1) of a CSV list's column.
	Column string `toml:"column"`

	// MaxBytes is the largest list, unpacked, up to 1 TiB; 0: 256 MiB from a
	// URL, 4 GiB from files.
	MaxBytes int64 `toml:"max_bytes"`

	// MinEntries is the fewest entries that are believed, up to 10^10; MaxShrink
	// by how many percent a list may shrink at once, 1 to 100 (wholly); MaxGrowth
	// to how many times its size it may grow, up to a million (0: any).
	MinEntries int64 `toml:"min_entries"`
	MaxShrink  int64 `toml:"max_shrink"`
	MaxGrowth  int64 `toml:"max_growth"`

	// OnProtected is what becomes of an entry that covers a protected name:
	// "skip" leaves it out, "hold" holds the list, "accept" takes it.
	OnProtected string `toml:"on_protected"`

	// Type is "block" or "allow".
	Type string `toml:"type"`

	// Action is "reject", "defer", "discard", "tag" or "monitor"; empty in an
	// allow list.
	Action string `toml:"action"`

	// HeaderAction takes Action's place for header senders; empty is the same
	// as Action.
	HeaderAction string `toml:"header_action"`

	// Stage is "envelope", "header" or both; never empty.
	Stage []string `toml:"stage"`

	// Match is "subtree" or "exact".
	Match string `toml:"match"`

	// PublicReason shows an entry's reason to the client.
	PublicReason bool `toml:"public_reason"`

	// Override makes an allow list beat every block list.
	Override bool `toml:"override"`

	// Optional lets the gate start while the list has no usable version.
	Optional bool `toml:"optional"`

	// AllowPublicSuffix accepts entries such as "com" and "co.uk".
	AllowPublicSuffix bool `toml:"allow_public_suffix"`
}

// StateDir returns the state directory that Copy is in; empty where there is none.
func (l List) StateDir() string {
	if l.Copy == "" {
		return ""
	}
	return filepath.Dir(filepath.Dir(filepath.Dir(l.Copy)))
}

// Files is the glob of the files that the list is read from: Path, or Copy.
func (l *List) Files() string {
	if l.Copy != "" {
		return globEscaper.Replace(l.Copy)
	}
	return l.Path
}
