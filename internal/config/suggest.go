package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// suggest returns a hint about an unknown key of a table: the key for which other
// programs use that name, a key of that name in another table, one of similar
// spelling, or else the keys of the table. Meant is the path of the suggested key,
// or empty.
func suggest(key, table string, known []string) (hint, meant string) {
	if _, ok := typeOf(key); ok && table == "" && strings.Contains(key, ".") {
		return "write it without the quotes: " + key, key
	}
	if key == "next_hop" && table == "listen" {
		return "the mail of [listen] goes to [next_hop]; a [[listener]] may have a next_hop of its own", "next_hop"
	}
	name, ok := alias(key, known)
	if !ok {
		if place, path := placeOf(key); place != "" {
			return "it belongs " + place, path
		}
		name, ok = Nearest(key, known)
	}
	if ok {
		return fmt.Sprintf("did you mean %q?", name), child(table, name)
	}
	if len(known) > manyKeys {
		return "\"spamgate config show --defaults\" prints all keys of this version", ""
	}
	names := strings.Join(known, ", ")
	if table == "" {
		return "the keys are " + names, ""
	}
	return display(table) + " has " + names, ""
}

// aliases are the names of keys in other programs.
var aliases = map[string][]string{
	"file": {"path", "output"}, "files": {"path"}, "filename": {"path"}, "source": {"path", "url"}, "lists": {"list"},
	"link": {"url"}, "uri": {"url"}, "interval": {"refresh", "poll_interval"}, "id": {"name"},
	"address": {"addr"}, "bind": {"addr"}, "host": {"addr"}, "port": {"addr"}, "server": {"addr"}, "upstream": {"addr"}, "backend": {"addr"},
	"cert": {"tls_cert"}, "certificate": {"tls_cert"}, "ssl_cert": {"tls_cert"}, "cert_file": {"tls_cert"},
	"ssl_key": {"tls_key"}, "private_key": {"tls_key"}, "key_file": {"tls_key"},
	"ca": {"tls_ca"}, "ca_file": {"tls_ca"}, "domains": {"recipient_domains", "protect"}, "relay_domains": {"recipient_domains"}, "relay_recipient_maps": {"valid_recipients"}, "local_recipient_maps": {"valid_recipients"},
	"whitelist": {"exempt_clients"}, "mynetworks": {"exempt_clients"}, "maxconn": {"max_connections"}, "max_size": {"max_message_bytes", "max_bytes"},
	"directory": {"dir"}, "path": {"dir", "socket"}, "myhostname": {"hostname"}, "upstreams": {"next_hop"}, "server_name": {"hostname"},
	"recipients": {"match"}, "entries": {"match"}, "action": {"max_action"},
	"verbosity": {"level"}, "loglevel": {"level"},
}

// alias returns the known key for which other programs use this name.
func alias(key string, known []string) (string, bool) {
	names := aliases[strings.ToLower(key)]
	i := slices.IndexFunc(names, func(name string) bool { return slices.Contains(known, name) })
	if i < 0 {
		return "", false
	}
	return names[i], true
}

// manyKeys is how many keys are too many for a hint.
const manyKeys = 20

// placeOf returns where a key of that name belongs, and its path there, or "".
func placeOf(key string) (place, path string) {
	if slices.Contains(keysOf(reflect.TypeFor[Config](), ""), key) {
		return "at the top of the file, before the first [table]", key
	}
	for _, f := range fieldsOf(reflect.TypeFor[Config](), "") {
		switch t := f.Type; {
		case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct && slices.Contains(keysOf(t.Elem(), f.key), key):
			return "in a [[" + f.key + "]]", ""
		case t.Kind() == reflect.Struct && slices.Contains(keysOf(t, f.key), key):
			return "in [" + f.key + "]", f.key + "." + key
		}
	}
	return "", ""
}

// Nearest returns the known name that s most likely misspells: the one with the
// fewest edits, if they are at most a third of the letters.
func Nearest(s string, known []string) (string, bool) {
	best, fewest := "", len(s)/3+1
	for _, name := range known {
		if n := edits(strings.ToLower(s), name); n < fewest {
			best, fewest = name, n
		}
	}
	return best, best != ""
}

// edits returns how many bytes must be inserted, deleted, replaced, or swapped with
// the next one, to turn a into b (optimal string alignment).
func edits(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1) // the rows of i-2 and i-1
	row := make([]int, len(b)+1)                                 // row[j]: edits from a[:i] to b[:j]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
