package config

import (
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"spamgate/smtpfilter/limit"
	"spamgate/smtpfilter/wire"
)

func prefixes(texts ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range texts {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// TestLoadAll sets every key to a value other than its default.
func TestLoadAll(t *testing.T) {
	path := write(t, `
hostname = "Gate.Bücher.example."
[[listener]]
name = "submission"
addr = ":587"
next_hop = { addr = "smtps://Out.Example", reuse = true, chunking = true, identity = "none", tls_ca = "tls/out.pem", reply_timeout = "5s" }
[listen]
addr = [":25", "[::1]:0", "systemd", "localhost:2525"]
max_message_bytes = 1
max_recipients = 100
shutdown_timeout = "1m30s"
tls = "required"
tls_cert = ["tls/gate.pem", "/etc/ssl/rsa.pem"]
tls_key = ["/etc/ssl/private/gate.key", "rsa.key"]
auth = "pass"
exempt_authenticated = true
name_lookup = false
lists = ["blocked", "always"]
trusted_proxies = ["192.0.2.1", "2001:db8::/32"]
proxy_protocol = ["::ffff:192.0.2.2"]
greeting_delay = "1m"
pregreet = "reject"
tarpit = "5m"
tarpit_max = 10000
bare_newline = "normalize"
bare_newline_except = ["198.51.100.0/24"]
min_data_rate = 1000000
max_hops = 1000
max_errors = 1
max_refusals = 100000
command_timeout = "1s"
data_timeout = "1h"
max_connections = 1000000
client_connections = 1
client_connections_per_minute = 2
client_messages_per_minute = 3
client_recipients_per_minute = 4
client_errors_per_minute = 5
network_connections = 6
network_connections_per_minute = 7
network_messages_per_minute = 8
network_recipients_per_minute = 9
network_errors_per_minute = 10
login_messages_per_minute = 11
login_recipients_per_minute = 12
limits_exempt = ["203.0.113.0/24"]
[next_hop]
addr = ["smtp://[0:0::1]", "smtps://Mail.Example"]
reuse = false
chunking = false
balance = "round_robin"
identity = "xclient"
proxy = "v2"
tls = "opportunistic"
tls_name = "Bücher.example"
tls_pins = ["AB:CD:EF:01:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF:01:23:45:67:89"]
probe_interval = "1s"
connect_timeout = "2s"
reply_timeout = "3s"
messages_per_connection = 4
allow_public = true
[[policy_service]]
name = "postfix"
addr = "unix:run/policy.sock"
socket_mode = "0660"
lists = ["blocked"]
exempt_authenticated = true
max_connections = 10
[[milter]]
addr = "unix:/run/../run/milter.sock"
socket_mode = "600"
lists = ["always", "blocked"]
max_connections = 0
[[milter]]
name = "sendmail"
addr = "localhost:10041"
[[dns_server]]
name = "dns"
addr = ":5353"
zone = "BL.Bücher.example."
hashed_zone = "Hash.bücher.example"
lists = ["blocked"]
ttl = "90s"
allow_clients = ["192.0.2.1", "2001:db8::/32"]
network_answers_per_second = 0
max_connections = 20
[filter]
kind = "counting"
family = "classic:RS,AP"
fpr = 0.001
entries = 5
counter_bits = 16
[state]
dir = "/var/lib/../lib/spamgate"
history = 0
[guard]
protect = ["Example.COM", "bücher.example."]
protect_providers = false
[admin]
socket = "/run/../run/spamgate/admin.sock"
socket_group = "adm"
socket_mode = "660"
metrics_addr = "[::1]:9025"
[console]
addr = "unix:/run/../run/spamgate/console.sock"
url = "HTTPS://Gate.Example.net:8443/"
sso_header = "x-remote-user"
share_accounts = false
socket_group = "www-data"
socket_mode = "660"
[publish]
addr = "192.0.2.7:8443"
tls_cert = "tls/lists.pem"
tls_key = "tls/lists.key"
key = "publish.key"
expires = "36h"
tokens = "/etc/spamgate/tokens"
[headers]
check = ["X-Original-From"]
max_bytes = 1000
max_addresses = 100
max_field_bytes = 998
check_bounces = true
[policy]
mode = "monitor"
unwrap = ["batv"]
mixed_headers = "tag"
recipient_domains = ["Example.COM", ".Bücher.example", "a_b.example.", "[IPv6:2001:DB8::1]", ".example.net", ".example.org"]
valid_recipients = ["Ann@Example.com", "@BÜCHER.example"]
exempt_recipients = ["Abuse@", "A.B+c@Example.com", "@BÜCHER.example", "ÄRGER@"]
exempt_clients = ["192.0.2.1", "192.0.2.0/24", "2001:db8::/32", "::ffff:192.0.2.9"]
contact = "help at https://example.com/mail"
reject_text = "no mail from {sender}: {reason}"
allow_discard = true
[watch]
poll_interval = "100ms"
[decisions]
keep = "2w"
max_bytes = "500 mib"
record = "all"
[fleet]
name = "mx1.Example.net"
servers = ["nats://NATS1.Bücher.example", "tls://[2001:db8::1]:4333"]
credentials = "fleet.creds"
tls_ca = "tls/fleet.pem"
tls_cert = "tls/mx1.pem"
tls_key = "/etc/tls/mx1.key"
[fleet.server]
listen = "0.0.0.0:4222"
cluster = ":6222"
routes = ["nats://mx2.example.net", "nats://mx3.example.net:6223"]
dir = "nats"
tls_cert = "tls/server.pem"
tls_key = "tls/server.key"
[log]
output = "journal"
format = "json"
level = "debug"
addresses = "hash"
[[list]]
name = "always"
path = "/etc/spamgate/always.txt"
type = "allow"
override = true
match = "exact"
proven_by = ["dkim", "spf"]
[[list]]
name = "blocked"
path = "blocked.txt"
action = "defer"
header_action = "tag"
stage = ["header"]
public_reason = false
optional = true
allow_public_suffix = true
[[list]]
name = "fetched"
url = "http://lists.example:8080/blocked.csv.zst?token=0"
signature_url = "https://lists.example/blocked.csv.zst.sig"
signed_file = "blocked.csv.zst"
tls_ca = "tls/lists.pem"
allow_http = true
refresh = "1m"
timeout = "1s"
public_key = "RWQAAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAhIiMkJSYn"
format = "csv"
column = "domain"
max_bytes = 1
min_entries = 2
max_shrink = 100
max_growth = 0
on_protected = "hold"
[[list]]
name = "asked"
dns_zone = "DBL.Bücher.example."
dns_codes = ["127.0.1.2", "127.0.1.4-127.0.1.99"]
dns_timeout = "100ms"
dns_on_error = "defer"
dns_test = "Test.Example."
[[list]]
name = "personal"
path = "personal.txt"
per_recipient = true
default = true
[[list]]
name = "kept"
managed = true
fleet = true
match = "exact"
default = true
publish = true
[[recipient_policy]]
name = "sales"
match = ["@Sales.Example.Net", "<CEO@bücher.example>", "help@", "*.example.org", "!Ann@sales.example.net"]
lists = ["blocked", "personal"]
max_action = "tag"
[[recipient_policy]]
match = "file:recipients/quiet"
mode = "monitor"
[[recipient_policy]]
match = ["example.org"]
exempt = true
[resolver]
addr = ["127.0.0.1:53", "[::0:1]:5353"]
`)
	dir := filepath.Dir(path)
	got, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	endpoint := Endpoint{
		Addr: Addresses{":25", "[::1]:0", "systemd", "localhost:2525"},
		Rules: wire.Rules{
			MaxMessageBytes: 1, MinDataRate: 1_000_000, MaxErrors: 1, MaxRefusals: 100_000,
			TrustedProxies: prefixes("192.0.2.1/32", "2001:db8::/32"),
			ProxySources:   prefixes("192.0.2.2/32"),
			GreetingDelay:  time.Minute, CommandTimeout: time.Second, DataTimeout: time.Hour,
		},
		MaxRecipients: 100, MaxHops: 1000,
		TLS: "required", TLSCert: Files{filepath.Join(dir, "tls/gate.pem"), "/etc/ssl/rsa.pem"}, TLSKey: Files{"/etc/ssl/private/gate.key", filepath.Join(dir, "rsa.key")},
		Auth: "pass", ExemptAuthenticated: true,
		Lists:             []string{"blocked", "always"},
		Pregreet:          "reject",
		Tarpit:            5 * time.Minute,
		TarpitMax:         10_000,
		BareNewline:       "normalize",
		BareNewlineExcept: prefixes("198.51.100.0/24"),
		MaxConnections:    1_000_000,
		Client:            limit.Limits{Connections: 1, ConnectionsPerMinute: 2, MessagesPerMinute: 3, RecipientsPerMinute: 4, ErrorsPerMinute: 5},
		Network:           limit.Limits{Connections: 6, ConnectionsPerMinute: 7, MessagesPerMinute: 8, RecipientsPerMinute: 9, ErrorsPerMinute: 10},
		Login:             limit.LoginLimits{MessagesPerMinute: 11, RecipientsPerMinute: 12},
		LimitsExempt:      prefixes("203.0.113.0/24"),
	}
	always, blocked, fetched := DefaultList(), DefaultList(), DefaultList()
	always.Name, always.Path, always.Type, always.Action = "always", "/etc/spamgate/always.txt", "allow", ""
	always.Override, always.Match = true, "exact"
	always.ProvenBy = []string{"dkim", "spf"}
	blocked.Name, blocked.Path, blocked.Action, blocked.HeaderAction = "blocked", filepath.Join(dir, "blocked.txt"), "defer", "tag"
	blocked.Stage, blocked.PublicReason, blocked.Optional, blocked.AllowPublicSuffix = []string{"header"}, false, true, true
	fetched.Name, fetched.Copy = "fetched", "/var/lib/spamgate/copies/fetched/list"
	fetched.URL, fetched.AllowHTTP = "http://lists.example:8080/blocked.csv.zst?token=0", true
	fetched.Refresh, fetched.Timeout = time.Minute, time.Second
	fetched.PublicKey = "RWQAAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAhIiMkJSYn"
	fetched.SignatureURL = "https://lists.example/blocked.csv.zst.sig"
	fetched.SignedFile = "blocked.csv.zst"
	fetched.TLSCA = filepath.Join(dir, "tls/lists.pem")
	fetched.Format, fetched.Column = "csv", "domain"
	fetched.MaxBytes, fetched.MinEntries, fetched.MaxShrink, fetched.MaxGrowth, fetched.OnProtected = 1, 2, 100, 0, "hold"
	asked := DefaultList()
	asked.Name, asked.DNSZone, asked.DNSCodes = "asked", "dbl.xn--bcher-kva.example", Addresses{"127.0.1.2", "127.0.1.4-127.0.1.99"}
	asked.DNSTimeout, asked.DNSOnError, asked.DNSTest = 100*time.Millisecond, "defer", "test.example"
	personal := DefaultList()
	personal.Name, personal.Path, personal.PerRecipient = "personal", filepath.Join(dir, "personal.txt"), true
	personal.Default = true
	kept := DefaultList()
	kept.Name, kept.Managed, kept.Default, kept.Match, kept.Publish = "kept", true, true, "exact", true
	kept.Fleet = true
	kept.Path, kept.Copy = "/var/lib/spamgate/managed/kept.txt", "/var/lib/spamgate/managed/kept.txt"
	submission := endpoint
	submission.Addr = Addresses{":587"}
	other := NextHop{
		Addr: Addresses{"smtps://out.example:465"}, Balance: "round_robin", Reuse: true, Chunking: true, Identity: "none", Proxy: "v2",
		TLS: "opportunistic", TLSName: "xn--bcher-kva.example", TLSCA: filepath.Join(dir, "tls/out.pem"),
		ProbeInterval: time.Second, AllowPublic: true,
		ConnectTimeout: 2 * time.Second, ReplyTimeout: 5 * time.Second, MessagesPerConnection: 4,
	}
	want := Config{
		File:      path,
		Hostname:  "gate.xn--bcher-kva.example",
		Listen:    Listen{Endpoint: endpoint, ShutdownTimeout: 90 * time.Second},
		Listeners: []Listener{{Name: "listen", Endpoint: endpoint}, {Name: "submission", NextHop: &other, Endpoint: submission}},
		NextHop: NextHop{
			Addr:    Addresses{"smtp://[::1]:25", "smtps://mail.example:465"},
			Balance: "round_robin", Identity: "xclient", Proxy: "v2",
			TLS: "opportunistic", TLSName: "xn--bcher-kva.example",
			TLSPins:       []string{"abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789"},
			ProbeInterval: time.Second, AllowPublic: true,
			ConnectTimeout: 2 * time.Second, ReplyTimeout: 3 * time.Second, MessagesPerConnection: 4,
		},
		Doors: []Door{
			{Table: TablePolicyService, Name: "postfix", Addr: "unix:" + filepath.Join(dir, "run/policy.sock"), SocketMode: "0660", Lists: []string{"blocked"}, ExemptAuthenticated: true, MaxConnections: 10},
			{Table: TableMilter, Name: "unix:/run/milter.sock", Addr: "unix:/run/milter.sock", SocketMode: "600", Lists: []string{"always", "blocked"}},
			{Table: TableMilter, Index: 1, Name: "sendmail", Addr: "localhost:10041", SocketMode: "0666", MaxConnections: AutoConnections},
			{
				Table: TableDNSServer, Name: "dns", Addr: ":5353", Zone: "bl.xn--bcher-kva.example", HashedZone: "hash.xn--bcher-kva.example", Lists: []string{"blocked"},
				TTL: 90 * time.Second, AllowClients: prefixes("192.0.2.1/32", "2001:db8::/32"), MaxConnections: 20,
			},
		},
		Filter: Filter{Kind: "counting", Family: "classic:RS,AP", FPR: 0.001, Entries: 5, CounterBits: 16, Confirm: true},
		State:  State{Dir: "/var/lib/spamgate"},
		Guard:  Guard{Protect: []string{"example.com", "xn--bcher-kva.example"}},
		Publish: Publish{
			Addr: "192.0.2.7:8443", TLSCert: Files{filepath.Join(dir, "tls/lists.pem")}, TLSKey: Files{filepath.Join(dir, "tls/lists.key")},
			Key: filepath.Join(dir, "publish.key"), Expires: 36 * time.Hour, Tokens: "/etc/spamgate/tokens",
		},
		Console: Console{
			Addr: "unix:/run/spamgate/console.sock", URL: "https://gate.example.net:8443", SSOHeader: "X-Remote-User",
			SocketGroup: "www-data", SocketMode: "660",
		},
		Admin:   Admin{Socket: "/run/spamgate/admin.sock", SocketGroup: "adm", SocketMode: "660", MetricsAddr: "[::1]:9025"},
		Headers: Headers{Check: []string{"X-Original-From"}, MaxBytes: 1000, MaxAddresses: 100, MaxFieldBytes: 998, CheckBounces: true},
		Policy: Policy{
			Mode:             "monitor",
			Unwrap:           []string{"batv"},
			MixedHeaders:     "tag",
			RecipientDomains: []string{"example.com", ".xn--bcher-kva.example", "a_b.example", "[ipv6:2001:db8::1]", ".example.net", ".example.org"},
			ValidRecipients:  []string{"ann@example.com", "@xn--bcher-kva.example"},
			ExemptRecipients: []string{"abuse@", "a.b+c@example.com", "@xn--bcher-kva.example", "ärger@"},
			ExemptClients:    prefixes("192.0.2.1/32", "192.0.2.0/24", "2001:db8::/32", "192.0.2.9/32"),
			Contact:          "help at https://example.com/mail",
			RejectText:       "no mail from {sender}: {reason}",
			AllowDiscard:     true,
		},
		Watch: Watch{PollInterval: 100 * time.Millisecond},
		Log:   Log{Output: "journal", Format: "json", Level: "debug", Addresses: "hash"},
		Fleet: Fleet{
			Name: "mx1.Example.net", Servers: Addresses{"nats://nats1.xn--bcher-kva.example:4222", "tls://[2001:db8::1]:4333"},
			Credentials: filepath.Join(dir, "fleet.creds"), TLSCA: filepath.Join(dir, "tls/fleet.pem"),
			TLSCert: filepath.Join(dir, "tls/mx1.pem"), TLSKey: "/etc/tls/mx1.key",
			Server: FleetServer{
				Listen: "0.0.0.0:4222", Cluster: ":6222", Routes: Addresses{"nats://mx2.example.net:6222", "nats://mx3.example.net:6223"},
				Dir: filepath.Join(dir, "nats"), TLSCert: filepath.Join(dir, "tls/server.pem"), TLSKey: filepath.Join(dir, "tls/server.key"),
			},
		},
		Decisions: Decisions{Keep: 14 * 24 * time.Hour, MaxBytes: 500 << 20, Record: "all"},
		Lists:     []List{always, blocked, fetched, asked, personal, kept},
		RecipientPolicies: []RecipientPolicy{
			{
				Name: "sales", Match: Addresses{"@sales.example.net", "ceo@xn--bcher-kva.example", "help@", "*.example.org", "!ann@sales.example.net"},
				Lists: []string{"blocked", "personal"}, MaxAction: "tag", Mode: "enforce",
			},
			{Name: "recipient_policy-2", Match: Addresses{"file:" + filepath.Join(dir, "recipients/quiet")}, Mode: "monitor"},
			{Name: "recipient_policy-3", Match: Addresses{"example.org"}, Exempt: true, Mode: "enforce"},
		},

		Resolver: Resolver{Addr: Addresses{"127.0.0.1:53", "[::1]:5353"}},
	}
	for i, warning := range []string{
		`policy_service.lists: the list "blocked" has no effect here: its stage is "header"`,
		`filter.fpr: 0.001 cannot be promised with the family "classic:RS,AP"`,
	} {
		if len(got.Warnings) != 3 || !slices.ContainsFunc(got.Warnings, func(e *Error) bool { return strings.Contains(e.Error(), warning) }) {
			t.Errorf("warnings lack %d, %s: %v", i, warning, got.Warnings)
		}
	}
	want.Warnings, want.Source = got.Warnings, got.Source
	if !reflect.DeepEqual(*got, want) {
		t.Errorf("got  %+v\nwant %+v", *got, want)
	}
	want.Warnings = nil
	sameAsDefault(t, "", reflect.ValueOf(want), reflect.ValueOf(Default()))
	t.Run("config show", func(t *testing.T) { sameAgain(t, path) })
}

// sameAsDefault reports keys that TestLoadAll does not set.
func sameAsDefault(t *testing.T, path string, got, def reflect.Value) {
	untested := []string{
		"filter.confirm",                    // see TestBad
		"next_hop.merge", "next_hop.tls_ca", // see TestMergeHasNoEffect, TestNextHopPaths
		"console.tls_cert", "console.tls_key", // see TestConsole
	}
	for field, value := range got.Fields() {
		key := path + field.Tag.Get("toml")
		if other := def.FieldByIndex(field.Index); value.Kind() == reflect.Struct {
			if !field.Anonymous {
				key += "."
			}
			sameAsDefault(t, key, value, other)
		} else if reflect.DeepEqual(value.Interface(), other.Interface()) && field.Tag.Get("toml") != noKey && !slices.Contains(untested, key) {
			t.Errorf("%s has its default", key)
		}
	}
}
