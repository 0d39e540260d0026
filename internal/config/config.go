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
	"time"
)

// Config is a whole configuration file. The toml tags are the names of the
// keys and tables.
type Config struct {
	// File is the path that was given to Load.
	File string `toml:"-"`

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
	// Kind is "classic", "sized" or "counting".
	Kind string `toml:"kind"`

	// Family is the filter's hashes, as hashfamily.ParseSpec reads and writes
	// it: "classic" and its parts with every kind, others with "sized" and
	// "counting" only. Where the file is silent it is "classic" for the kind
	// "classic" and "double" for the others.
	Family string `toml:"family"`

	// FPR is the false positive rate that a sized or counting filter is made
	// for; 1e-12 to 0.5.
	FPR float64 `toml:"fpr"`

	// Entries is the number of entries that a sized or counting filter has
	// room for at least, up to 1,000,000,000; 0: half as many again as the
	// lists hold.
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
}

// Headers says which header fields are judged.
type Headers struct {
	// Check holds names of header fields as they were written, none twice.
	// None: headers are not judged.
	Check []string `toml:"check"`

	// MaxBytes bounds the header section; 1,000 to 16,777,216.
	MaxBytes int64 `toml:"max_bytes"`

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
	// Output is "stderr", "syslog" or "journal".
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
	// Name is unique; letters, digits, ".", "_" and "-".
	Name string `toml:"name"`

	// Path is absolute; it may be a glob (path/filepath.Match).
	Path string `toml:"path"`

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
