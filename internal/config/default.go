package config

import (
	"slices"
	"time"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/store"
	"spamgate/smtpfilter/limit"
	"spamgate/smtpfilter/wire"
)

// Default returns the configuration of an empty file, without a host name, with
// relative paths and before [listen] becomes a listener. It has no lists: a file
// must define one.
func Default() Config {
	return Config{
		Listen: Listen{
			Endpoint: Endpoint{
				Addr: Addresses{"127.0.0.1:2525"},
				Rules: wire.Rules{
					MaxMessageBytes: 50 << 20,
					MinDataRate:     500,
					MaxErrors:       10,
					MaxRefusals:     100,
					CommandTimeout:  5 * time.Minute, // RFC 5321, section 4.5.3.2.7
					DataTimeout:     3 * time.Minute, // section 4.5.3.2.5
				},
				MaxRecipients:  1000,
				MaxHops:        50,
				TLS:            "none",
				Auth:           "none",
				NameLookup:     true,
				Pregreet:       "log",
				TarpitMax:      100,
				BareNewline:    "reject",
				MaxConnections: AutoConnections,
				Client:         limit.Limits{Connections: 50}, // as Postfix's smtpd_client_connection_count_limit
			},
			ShutdownTimeout: 30 * time.Second,
		},
		NextHop: NextHop{
			Addr:           Addresses{"maildir:mail"},
			Reuse:          true,
			Chunking:       true,
			Balance:        "priority",
			Identity:       "auto",
			TLS:            "none",
			ProbeInterval:  time.Minute,
			ConnectTimeout: 10 * time.Second,
			ReplyTimeout:   2 * time.Minute,
		},
		Filter: Filter{
			Kind: "classic", Family: "classic", FPR: 1e-6, CounterBits: 4, Confirm: true,
		},
		State:   State{Dir: "state", History: 5},
		Guard:   Guard{ProtectProviders: true},
		Admin:   Admin{Socket: "state/admin.sock", SocketMode: "0600"},
		Console: Console{ShareAccounts: true, SocketMode: "0660"},
		Publish: Publish{Expires: 7 * 24 * time.Hour},
		Headers: Headers{
			Check:         []string{"From", "Sender", "Reply-To"},
			MaxBytes:      256 << 10,
			MaxAddresses:  1000,
			MaxFieldBytes: 16 << 10,
		},
		Policy: Policy{
			Mode:             "enforce",
			Unwrap:           slices.Clone(unwrapSchemes),
			MixedHeaders:     "refuse",
			ExemptRecipients: []string{"postmaster@", "abuse@"},
			RejectText:       "<{sender}> refused: list {list} ({reason}); id {id}; {contact}",
		},
		Watch: Watch{PollInterval: 30 * time.Second},
		Log: Log{
			Output:    "stderr",
			Format:    "text",
			Level:     "info",
			Addresses: "full",
		},
		Decisions: Decisions{Keep: 7 * 24 * time.Hour, MaxBytes: 1 << 30, Record: "refused"},
	}
}

// DefaultList returns the values of an empty [[list]] table. Name and path have no
// default. Load clears the Action of an allow list.
func DefaultList() List {
	return List{
		Type:         "block",
		Action:       "reject",
		Stage:        []string{"envelope", "header"},
		Match:        "subtree",
		PublicReason: true,
		Refresh:      time.Hour,
		Timeout:      5 * time.Minute,
		Format:       listfile.Plain,
		MaxShrink:    20,
		MaxGrowth:    10,
		Rules:        store.Rules{OnProtected: store.SkipProtected},
		DNSTimeout:   2 * time.Second,
		DNSOnError:   onErrorAccept,
	}
}
