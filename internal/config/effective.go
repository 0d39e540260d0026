package config

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"spamgate/internal/text"
)

// Effective returns all tables of the file at path with the values that the gate uses:
// those of the file, with absolute paths and normalised, and the defaults of the
// other keys. A Note names the line of a value. What may be a secret in the URL of a
// list is replaced by "...".
//
// Keys that would have no effect in the file are left out: those for a list from a
// URL in a list from a file, those for a list in DNS in others and the reverse, path
// in a managed list, socket_mode of a door without a unix socket, those of a console
// that is off or has the other kind of socket, those of a fleet that is off, fleet in a list
// that no gate could share, in a [[listener]] those that the file
// does not set, which have the values of [listen], and without a listener those of
// [next_hop] and nearly all of [listen].
func Effective(path string) (*Config, []Table, error) {
	c, err := Load(path)
	if err != nil {
		return nil, nil, err
	}
	tables, err := c.Tables()
	return c, tables, err
}

// Changed reports whether the file of a configuration that was loaded has another text now.
func (c *Config) Changed() (bool, error) {
	src, err := readFile(c.File)
	return err == nil && !bytes.Equal(bytes.TrimPrefix(src, []byte(byteOrderMark)), c.Source), err
}

// Tables returns the tables of a configuration that was loaded, as [Effective] does.
func (c *Config) Tables() (all []Table, err error) {
	at := index(c.Source).at
	var set struct {
		Hostname string `toml:"hostname"`
	}
	if err := toml.Unmarshal(c.Source, &set); err != nil {
		return nil, err // not after Parse
	}
	for _, t := range Defaults() {
		switch t.Name {
		case "listener":
			all = append(all, c.listenerTables(at)...)
		case "list":
			all = append(all, c.listTables(at)...)
		case TableRecipientPolicy:
			all = append(all, c.recipientPolicyTables(at)...)
		case TablePolicyService, TableMilter, TableDNSServer:
			all = append(all, c.doorTables(at, t.Name)...)
		case "":
			all = append(all, c.topKeys(at, set.Hostname != ""))
		case "next_hop":
			if len(c.Listeners) > 0 {
				all = append(all, c.singleTable(at, t.Name))
			}
		default:
			all = append(all, c.singleTable(at, t.Name))
		}
	}
	return all, nil
}

// topKeys returns the keys before the first table. The file need not name the gate.
func (c *Config) topKeys(at positions, named bool) Table {
	keys := noted(at, "", []Key{{Name: "hostname", Value: c.Hostname}})
	if !named {
		keys[0].Note = "the machine's own name"
	}
	return Table{Keys: keys}
}

// singleTable returns a table that a file has only once.
func (c *Config) singleTable(at positions, name string) Table {
	t := Table{Name: name}
	table := reflect.ValueOf(*c)
	for part := range strings.SplitSeq(name, ".") {
		for _, f := range fieldsOf(table.Type()) {
			if f.Tag.Get("toml") == part {
				table = table.FieldByIndex(f.Index)
				break
			}
		}
	}
	for _, k := range keysIn(table) {
		obsolete := name == "next_hop" && k.Name == "merge"
		closed := name == "listen" && k.Name == "addr" && len(c.Listen.Addr) == 0 && !at.has("listen.addr")
		unused := name == "listen" && len(c.Listeners) == 0 && k.Name != "addr" && k.Name != "shutdown_timeout"
		off := name == "console" && c.Console.useless(k.Name) || c.Fleet.useless(name, k.Name) ||
			name == "publish" && c.Publish.Addr == "" && k.Name != "addr" && k.Name != "key"
		if !obsolete && !closed && !unused && !off {
			t.Keys = append(t.Keys, k)
		}
	}
	t.Keys = noted(at, name, t.Keys)
	return t
}

// listenerTables returns the [[listener]] tables with the keys that the file sets.
func (c *Config) listenerTables(at positions) (tables []Table) {
	own := c.Listeners
	if len(c.Listen.Addr) > 0 {
		own = own[1:] // [listen] is the first of them
	}
	for i, l := range own {
		t, path := Table{Name: "listener", Array: true}, element("listener", i)
		for _, k := range keysIn(reflect.ValueOf(l)) {
			if !at.has(child(path, k.Name)) {
				continue
			}
			if k.Name == "next_hop" {
				k.Value = l.NextHop.written(at, child(path, k.Name))
			}
			t.Keys = append(t.Keys, k)
		}
		t.Keys = noted(at, path, t.Keys)
		tables = append(tables, t)
	}
	return tables
}

// written returns the next hop of a listener as the file has it: addresses, or a table
// with the keys that it sets.
func (n *NextHop) written(at positions, path string) any {
	if at.hopAddr(path) == path {
		return written(reflect.ValueOf(n.Addr))
	}
	set := []Key{}
	for _, k := range keysIn(reflect.ValueOf(*n)) {
		if at.has(child(path, k.Name)) && k.Name != "merge" {
			set = append(set, k)
		}
	}
	return set
}

// doorTables returns the tables of one kind of door.
func (c *Config) doorTables(at positions, name string) (tables []Table) {
	var all reflect.Value
	for f, v := range reflect.ValueOf(*c).Fields() {
		if f.Tag.Get("toml") == name {
			all = v
		}
	}
	for _, door := range c.Doors() {
		if door.Table != name {
			continue
		}
		t := Table{Name: name, Array: true}
		_, unix := door.Unix()
		for _, k := range keysIn(all.Index(door.Index)) {
			unnamed := k.Name == "name" && k.Value == door.Addr
			if k.Value != "" && !unnamed && (unix || k.Name != "socket_mode") {
				t.Keys = append(t.Keys, k)
			}
		}
		t.Keys = noted(at, door.Path(), t.Keys)
		tables = append(tables, t)
	}
	return tables
}

// listTables returns the [[list]] tables.
func (c *Config) listTables(at positions) (tables []Table) {
	for i, l := range c.Lists {
		t := Table{Name: "list", Array: true}
		useless := l.uselessKeys()
		for _, k := range keysIn(reflect.ValueOf(l)) {
			if k.Value != "" && !useless[k.Name] {
				t.Keys = append(t.Keys, k)
			}
		}
		t.Keys = noted(at, element("list", i), t.Keys)
		for j := range t.Keys {
			t.Keys[j].hideSecret()
		}
		tables = append(tables, t)
	}
	return tables
}

// recipientPolicyTables returns the [[recipient_policy]] tables with what they say.
func (c *Config) recipientPolicyTables(at positions) (tables []Table) {
	for i, p := range c.RecipientPolicies {
		path := element(TableRecipientPolicy, i)
		t := Table{Name: TableRecipientPolicy, Array: true}
		for _, k := range keysIn(reflect.ValueOf(p)) {
			if k.Name == "name" || at.has(child(path, k.Name)) {
				t.Keys = append(t.Keys, k)
			}
		}
		t.Keys = noted(at, path, t.Keys)
		tables = append(tables, t)
	}
	return tables
}

// uselessKeys returns the keys that have no effect in the list.
func (l *List) uselessKeys() map[string]bool {
	useless := map[string]bool{"path": l.Managed, "managed": l.URL != "", "default": l.URL != "", "fleet": !l.Managed && l.URL == ""}
	for _, k := range l.remoteKeys() {
		useless[k.name] = l.URL == ""
	}
	for _, k := range l.dnsKeys() {
		useless[k.name] = !l.InDNS()
	}
	if l.InDNS() {
		for _, k := range l.fileKeys() {
			useless[k.name] = true
		}
	}
	return useless
}

// hideSecret replaces what may be a secret in the URL or zone of a list.
func (k *Key) hideSecret() {
	show := text.ShownURL
	switch k.Name {
	case "url", "signature_url":
	case "dns_zone":
		show = text.ShownZone
	default:
		return
	}
	if shown := show(k.Value.(string)); shown != k.Value {
		k.Value = shown
		k.Note += `; "..." hides what may be a secret`
	}
}

// noted gives keys that the file sets the note in which line.
func noted(at positions, path string, keys []Key) []Key {
	for i := range keys {
		if p := child(path, keys[i].Name); at.has(p) {
			line, _ := at.find(p)
			keys[i].Note = fmt.Sprintf("line %d", line)
		}
	}
	return keys
}

// NeedsRestart reports whether a change of a key has an effect only at a restart or a handover.
func NeedsRestart(table, key string) bool {
	switch table {
	case "":
		return key == "hostname"
	case "listen", "listener":
		return key == "addr"
	case "state":
		return key == "dir"
	case "log":
		return true
	case TablePolicyService, TableMilter, TableDNSServer:
		return key == "addr" || key == "name"
	case "console":
		return key == "socket_group"
	case "fleet.server":
		return true // of spamgate-fleetd
	}
	return false
}
