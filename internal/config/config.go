// Package config reads spamgate's TOML configuration.
//
// [Load] reports all faults of a file at once, each with its line and with what
// to do about it. The values that it returns are checked and normalised, so that
// the caller only converts them. Of the gate's other packages it uses those that
// know the forms of addresses, list files, lists in DNS and hash families, and the
// settings that libraries take as they are written.
//
// reference/reference.toml explains every key. The comments here say what the
// loaded value looks like. Struct tags say what a value may be:
//
//   - toml: the name of the key or table;
//   - oneof: the strings that are accepted, separated by commas;
//   - range: the least and the greatest value, as written in the file;
//   - prefix: with what the keys of a struct begin;
//   - only: the tables that have the key, if others of the same struct lack it.
package config

import (
	"net/netip"
	"path/filepath"
	"time"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/store"
	"spamgate/internal/text"
)

// Config is a whole configuration file.
type Config struct {
	File   string `toml:"-"` // the path that was given to Load
	Source []byte `toml:"-"` // the text of the file

	// Warnings are about accepted lines that may not do what their author
	// expects, such as keys without effect; in the order of the file.
	Warnings []*Error `toml:"-"`

	// Hostname is the gate's own name in greetings and trace fields: a domain
	// name in lower case or an address literal. Load never leaves it empty.
	Hostname string `toml:"hostname"`

	Listen Listen `toml:"listen"`

	NextHop NextHop `toml:"next_hop"`

	// Listeners holds every listener; Load leaves it empty only if there is a door.
	// [listen] comes first, unless its addr is [] or there are [[listener]] tables
	// and it has no addr. Each [[listener]] has the values of [listen] for the keys
	// that it does not set.
	Listeners []Listener `toml:"listener"`

	// Doors holds the further ways to ask for a decision: the policy services, the milters and
	// the DNS servers, in this order.
	Doors []Door `toml:"policy_service,milter,dns_server"`

	Filter  Filter  `toml:"filter"`
	State   State   `toml:"state"`
	Guard   Guard   `toml:"guard"`
	Admin   Admin   `toml:"admin"`
	Console Console `toml:"console"`
	Publish Publish `toml:"publish"`
	Headers Headers `toml:"headers"`
	Policy  Policy  `toml:"policy"`
	Watch   Watch   `toml:"watch"`
	Log     Log     `toml:"log"`

	Decisions Decisions `toml:"decisions"`

	Fleet Fleet `toml:"fleet"`

	Resolver Resolver `toml:"resolver"`

	// Lists holds the [[list]] tables, at least one, in the order of the file.
	// Of equally strict actions that of the first list counts.
	Lists []List `toml:"list"`

	// RecipientPolicies holds the [[recipient_policy]] tables in the order of the file.
	RecipientPolicies []RecipientPolicy `toml:"recipient_policy"`
}

// Addresses is an array of strings. A single string in the file is an array of one.
type Addresses []string

// Files are paths, written like Addresses.
type Files = Addresses

// Filter says how the lists are searched.
type Filter struct {
	Kind string `toml:"kind" oneof:"classic,sharded,sized,counting,fuse,auto"`

	// Family is the hash family, in the normal form of hashfamily.ParseSpec. Its
	// default is "double" for "sized" and "counting", which take any family, and
	// "classic" for the others, which take only "classic" and parts of it. For
	// "fuse" it is empty.
	Family string `toml:"family"`

	// FPR is the false positive rate of a sized, counting or fuse filter: 1e-12
	// to 0.5, for "fuse" at least 2^-32.
	FPR float64 `toml:"fpr"`

	// Entries is the least capacity of a filter that is neither classic nor
	// fuse; 0: more than the lists hold.
	Entries int64 `toml:"entries" range:"0,10000000000"`

	CounterBits int64 `toml:"counter_bits"` // of a counting filter: 4, 8 or 16

	// Confirm looks up every match of the filter in the exact index. It is false
	// only with one block list and no allow list; the caller must check that the
	// list has no exceptions.
	Confirm bool `toml:"confirm"`
}

// State describes the state directory.
type State struct {
	Dir     string `toml:"dir"`                   // absolute
	History int64  `toml:"history" range:"0,100"` // earlier versions of each list to keep
}

// Guard names the domains that no block list may list, nor their subdomains.
type Guard struct {
	Protect          []string `toml:"protect"`           // domains in lower case with A-labels; "@" before one: it alone
	ProtectProviders bool     `toml:"protect_providers"` // add the large mail providers
}

// Admin describes the admin socket and the address for metrics.
type Admin struct {
	Socket      string `toml:"socket"`       // absolute; empty: no socket
	SocketGroup string `toml:"socket_group"` // name or number; empty: that of the process

	// SocketMode has three or four octal digits. It gives the owner read and
	// write access, and others none.
	SocketMode string `toml:"socket_mode"`

	MetricsAddr string `toml:"metrics_addr"` // "host:port" over TCP; empty: none
}

// Headers says which header fields are judged.
type Headers struct {
	// Check holds the names of header fields as they were written, without
	// duplicates. Empty: headers are not judged.
	Check []string `toml:"check"`

	// MaxBytes bounds the header section. A line alone may have 998 bytes
	// (RFC 5322, section 2.1.1), and no honest header comes near 16 MiB.
	MaxBytes int64 `toml:"max_bytes" range:"1000,16777216"`

	// MaxAddresses bounds the sender addresses in a header. A broken field may
	// have several readings, which all count, and each lookup takes about 1 µs.
	MaxAddresses int64 `toml:"max_addresses" range:"100,10000"`

	// MaxFieldBytes bounds each field that is checked. A line alone may have 998 bytes.
	// Postfix cuts off what a field has beyond 102400 bytes (header_size_limit).
	MaxFieldBytes int64 `toml:"max_field_bytes" range:"998,65536"`

	CheckBounces bool `toml:"check_bounces"` // also with the null reverse-path
}

// Policy says what happens to listed mail, and who is exempt.
type Policy struct {
	Mode string `toml:"mode" oneof:"enforce,monitor"`

	// Unwrap holds the ways to wrap a sender that are undone: "srs", "batv". It is empty
	// with a filter that is not confirmed.
	Unwrap []string `toml:"unwrap"`

	// MixedHeaders says what happens to a message whose header senders some of its
	// recipients refuse.
	MixedHeaders string `toml:"mixed_headers" oneof:"refuse,tag"`

	// RecipientDomains holds domains in lower case with A-labels: "example.com"
	// is that domain alone, ".example.com" also every subdomain. Or its only element
	// is "file:" with the absolute path of a file that has them; see DomainsFile.
	// Empty: every recipient is accepted.
	RecipientDomains Addresses `toml:"recipient_domains"`

	// ValidRecipients holds "user@domain" and "@domain", case folded and with
	// A-labels, or "file:" with a path; see RecipientsFile. Empty: all recipients at
	// the RecipientDomains, without which it is always empty.
	ValidRecipients Addresses `toml:"valid_recipients"`

	// ExemptRecipients holds "user@", "user@domain" and "@domain", case folded
	// and with A-labels.
	ExemptRecipients []string `toml:"exempt_recipients"`

	// ExemptClients holds masked prefixes, never IPv4-mapped IPv6.
	ExemptClients []netip.Prefix `toml:"exempt_clients"`

	// Contact is printable ASCII, at most 200 bytes; it may be empty.
	Contact string `toml:"contact"`

	// RejectText is the template of a refusal without its reply code. Its
	// placeholders are {sender}, {list}, {reason}, {id} and {contact}. If the
	// contact is empty, the "; " before its placeholder is left out too.
	RejectText string `toml:"reject_text"`

	AllowDiscard bool `toml:"allow_discard"` // permit actions that drop mail
}

// Watch is for file systems that do not report changes of the list files.
type Watch struct {
	PollInterval time.Duration `toml:"poll_interval" range:"100ms,24h"`
}

// Log says what is logged, how and where.
type Log struct {
	// Output is "stderr", "syslog", "journal", or "file:" with an absolute path.
	Output string `toml:"output"`

	Format    string `toml:"format" oneof:"text,json"`
	Level     string `toml:"level" oneof:"debug,info,warn,error"`
	Addresses string `toml:"addresses" oneof:"full,domain,hash"`
}

// RecordAll is the Decisions.Record that keeps plain accepts, too.
const RecordAll = "all"

// Decisions says what the history of decisions keeps.
type Decisions struct {
	Keep     time.Duration `toml:"keep" range:"0,3650d"` // 0: there is no history
	MaxBytes Size          `toml:"max_bytes" range:"16MiB,1TiB"`

	// Record is "refused", all decisions but accepted messages that no list says anything
	// about, or "all".
	Record string `toml:"record" oneof:"refused,all"`
}

// Resolver names the DNS servers that lists in DNS are asked through.
type Resolver struct {
	// Addr holds "host:port", the host an IP address. Empty: those of /etc/resolv.conf.
	Addr Addresses `toml:"addr"`
}

// List is one [[list]] table.
type List struct {
	// Name is unique and a valid file name: up to 100 letters, digits, ".", "_"
	// and "-".
	Name string `toml:"name"`

	// Path is an absolute path or glob (path/filepath.Match); empty if there is a
	// URL or a DNSZone. That of a managed list is NAME.txt in the directory "managed"
	// of the state directory.
	Path string `toml:"path"`

	// Copy is the absolute path of the file, not a glob, that holds what was last
	// fetched from the URL, or that is the file of a managed list; empty in other lists.
	Copy string `toml:"-"`

	// Instead, if not empty, is a copy of the managed list that this process reads instead,
	// since it may not read Copy. Load does not set it.
	Instead string `toml:"-"`

	// URL is the https URL of the list, http only with AllowHTTP; empty if there
	// is a Path or a DNSZone.
	URL string `toml:"url"`

	// Refresh is the time between two fetches, and Timeout bounds one.
	Refresh time.Duration `toml:"refresh" range:"1m,720h"`
	Timeout time.Duration `toml:"timeout" range:"1s,1h"`

	// PublicKey is a minisign public key; empty: no signature is needed.
	// SignatureURL is the signature's URL; empty: URL with ".minisig" appended.
	PublicKey    string `toml:"public_key"`
	SignatureURL string `toml:"signature_url"`

	// SignedFile is the name that the signature has for the list's file; empty: the
	// last element of URL's path.
	SignedFile string `toml:"signed_file"`

	AllowHTTP bool `toml:"allow_http"` // permit URLs without TLS

	// TLSCA is the absolute path of a PEM file with the authorities to trust for
	// the URLs; empty: the system's. Load does not open the file.
	TLSCA string `toml:"tls_ca"`

	store.Rules
	Format listfile.Format `toml:"format"` // or "auto"
	Column string          `toml:"column"` // name or number (from 1), for CSV; path, for JSON

	// MaxBytes is the largest size of the list, unpacked; 0: 256 MiB from a URL,
	// 4 GiB from files.
	MaxBytes int64 `toml:"max_bytes" range:"0,1099511627776"`

	// MaxShrink is by how many percent the list may shrink at once, and MaxGrowth how many
	// times its size it may grow to (0: any).
	MaxShrink int64 `toml:"max_shrink" range:"1,100"`
	MaxGrowth int64 `toml:"max_growth" range:"0,1000000"`

	// DNSZone makes the list one that is asked over DNS: the zone below which a
	// domain's name is looked up, in lower case without a final dot. Else it is empty, and
	// the other keys have no effect. Such a list blocks; it has no Path, URL or Copy.
	DNSZone string `toml:"dns_zone"`

	// DNSCodes are the answers that count, as dnslist.ParseCodes reads them; empty: all.
	DNSCodes Addresses `toml:"dns_codes"`

	// DNSTimeout bounds how long a message waits for the answers.
	DNSTimeout time.Duration `toml:"dns_timeout" range:"100ms,30s"`

	// DNSOnError says what happens to mail without an answer.
	DNSOnError string `toml:"dns_on_error" oneof:"accept,defer"`

	// DNSTest is a name that the zone lists, in lower case, to prove that it works;
	// empty: "test", whose absence is only a warning.
	DNSTest string `toml:"dns_test"`

	Type         string   `toml:"type" oneof:"block,allow"`
	Action       string   `toml:"action"`        // empty in an allow list
	HeaderAction string   `toml:"header_action"` // for header senders; empty: as Action
	Stage        []string `toml:"stage"`         // "envelope", "header" or both; never empty
	Match        string   `toml:"match" oneof:"subtree,exact"`

	// ProvenBy holds the proofs of which one must hold for an entry to count: "spf",
	// "dkim". Only an allow list has any.
	ProvenBy []string `toml:"proven_by"`

	// PerRecipient says that each line has a recipient and an entry. Its format is
	// "plain".
	PerRecipient bool `toml:"per_recipient"`

	// Managed says that the gate keeps the list in its state directory, and that it is
	// edited only through the gate. Default says that entries go there for which no list
	// is named.
	Managed bool `toml:"managed"`
	Default bool `toml:"default"`

	// Publish says that others can fetch the list from the gate, see the type Publish.
	Publish bool `toml:"publish"`

	// Fleet says that the list belongs to the fleet. It is set only with Managed or a URL.
	Fleet bool `toml:"fleet"`

	PublicReason      bool `toml:"public_reason"`       // show an entry's reason to the client
	Override          bool `toml:"override"`            // an allow list beats every block list
	AllowPublicSuffix bool `toml:"allow_public_suffix"` // accept entries such as "com" and "co.uk"
}

// The directories in the state directory with the files of lists: see [Config.keepIn].
const (
	copiesDir  = "copies"
	managedDir = "managed"
)

// keepIn makes dir the state directory, which holds the files of managed lists and the
// copies of lists from URLs.
func (c *Config) keepIn(dir string) {
	c.State.Dir = dir
	for i := range c.Lists {
		switch l := &c.Lists[i]; {
		case l.Managed:
			l.Copy = filepath.Join(dir, managedDir, l.Name+".txt")
			l.Path = text.EscapeGlob(l.Copy)
		case l.URL != "":
			l.Copy = filepath.Join(dir, copiesDir, l.Name, "list")
		}
	}
}

// KeepState makes the configuration use the state directory of another one.
func (c *Config) KeepState(config *Config) { c.keepIn(config.State.Dir) }

// StateDir returns the state directory that holds Copy; empty without a Copy.
func (l List) StateDir() string {
	switch {
	case l.Copy == "":
		return ""
	case l.Managed:
		return filepath.Dir(filepath.Dir(l.Copy))
	}
	return filepath.Dir(filepath.Dir(filepath.Dir(l.Copy)))
}

// InDNS reports whether the list is asked over DNS, and so has no entries here.
func (l *List) InDNS() bool { return l.DNSZone != "" }

// Files returns the glob of the files that hold the list: Path, or Copy; empty for a list in
// DNS.
func (l *List) Files() string {
	if l.Copy != "" {
		return text.EscapeGlob(l.Copy)
	}
	return l.Path
}
