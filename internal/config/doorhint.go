package config

import (
	"fmt"
	"net"
	"slices"
	"strings"
)

// doorHint returns a hint about an unknown key in the table of a door, and the path of the
// key that it stands for. Both are empty if only [suggest] can help.
func doorHint(key, table string, value any) (hint, meant string) {
	kind, _, _ := strings.Cut(table, "[")
	switch {
	case !isDoor(kind):
	case key == "listen", key == "socket":
		addr, _ := value.(string)
		if own := (Door{Table: kind, Addr: addr}).foreignAddr(); own != "" {
			return fmt.Sprintf("write addr = %q", own), child(table, "addr")
		}
		return `did you mean "addr"?`, child(table, "addr")
	case kind == TableMilter && key == "timeout":
		return "write it in main.cf as command_timeout, in the braces of smtpd_milters", ""
	case kind == TableMilter && slices.Contains(milterClientKeys, key):
		return "write it in main.cf, in the braces of smtpd_milters", ""
	case kind == TablePolicyService && slices.Contains(policyClientKeys, key):
		return "write it in main.cf, in the braces of check_policy_service", ""
	}
	return "", ""
}

// What Postfix decides when it asks a door.
var (
	policyClientKeys = []string{"timeout", "default_action", "max_idle", "max_ttl", "request_limit", "retry_delay", "try_limit", "policy_context"}
	milterClientKeys = []string{"default_action", "command_timeout", "connect_timeout", "content_timeout", "protocol"}
)

// isDoor reports whether a table is that of a door.
func isDoor(table string) bool {
	return table == TablePolicyService || table == TableMilter || table == TableDNSServer
}

// foreignAddr returns the address of a door that is written as Postfix, Sendmail or other
// milters write it, as it is written here; "" if it is none.
func (d Door) foreignAddr() string {
	family, rest, _ := strings.Cut(d.Addr, ":")
	if strings.HasPrefix(d.Addr, "/") {
		family, rest = "local", d.Addr
	}
	switch family {
	case "local", "unix":
		if d.Table != TableDNSServer && socketPath(rest) == "" {
			return schemeUnix + rest
		}
	case "inet", "inet6":
		if port, host, ok := strings.Cut(rest, "@"); ok {
			rest = net.JoinHostPort(strings.Trim(host, "[]"), port)
		}
		if rest != Systemd && checkListen(rest) == nil {
			return rest
		}
	}
	return ""
}

// wantString says what to write for a string.
func wantString(path string, value any) string {
	table, key, _ := strings.Cut(path, ".")
	kind, _, _ := strings.Cut(table, "[")
	if _, array := value.([]any); array && key == "addr" && isDoor(kind) {
		return "a string in quotes; for a second address write a second [[" + kind + "]]"
	}
	return "a string in quotes"
}
