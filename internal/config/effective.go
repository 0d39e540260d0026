package config

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"

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
	pos := index(c.Source).pos
	var set struct {
		Hostname string `toml:"hostname"`
	}
	if err := toml.Unmarshal(c.Source, &set); err != nil {
		return nil, err // not after Parse
	}
	for _, t := range c.withEmptyArrays() {
		switch {
		case t.Array:
			all = append(all, c.arrayTables(pos, t.Name)...)
		case t.Name == "":
			all = append(all, c.topKeys(pos, set.Hostname != ""))
		case t.Name != "next_hop" || len(c.Listeners) > 0:
			t.Keys = noted(pos, t.Name, slices.DeleteFunc(t.Keys, func(k Key) bool { return c.useless(pos, t.Name, k.Name) }))
			all = append(all, t)
		}
	}
	return all, nil
}

// topKeys returns the keys before the first table. The file need not name the gate.
func (c *Config) topKeys(pos positions, named bool) Table {
	keys := noted(pos, "", []Key{{Name: "hostname", Value: c.Hostname}})
	if !named {
		keys[0].Note = "the machine's own name"
	}
	return Table{Keys: keys}
}

// useless reports whether a key of a table that a file has only once has no effect.
func (c *Config) useless(pos positions, table, key string) bool {
	switch table {
	case "next_hop":
		return key == "merge"
	case "listen":
		closed := key == "addr" && len(c.Listen.Addr) == 0 && !pos.has("listen.addr")
		return closed || len(c.Listeners) == 0 && key != "addr" && key != "shutdown_timeout"
	case "console":
		return c.Console.useless(key)
	case "publish":
		return c.Publish.Addr == "" && key != "addr" && key != "key"
	}
	return c.Fleet.useless(table, key)
}

// arrayTables returns the tables of an array with the keys that count.
func (c *Config) arrayTables(pos positions, name string) (all []Table) {
	add := func(path string, table any, counts func(*Key) bool) {
		t := Table{Name: name, Array: true}
		for _, k := range noted(pos, path, keysIn(reflect.ValueOf(table), name)) {
			if counts(&k) {
				t.Keys = append(t.Keys, k)
			}
		}
		all = append(all, t)
	}
	switch name {
	case "listener":
		own := c.Listeners
		if len(c.Listen.Addr) > 0 {
			own = own[1:] // [listen] is the first of them
		}
		for i, l := range own {
			path := element(name, i)
			add(path, l, func(k *Key) bool {
				set := pos.has(child(path, k.Name))
				if set && k.Name == "next_hop" {
					k.Value = l.NextHop.written(pos, child(path, k.Name))
				}
				return set
			})
		}
	case "list":
		for i, l := range c.Lists {
			useless := l.uselessKeys()
			add(element(name, i), l, func(k *Key) bool {
				k.hideSecret()
				return k.Value != "" && !useless[k.Name]
			})
		}
	case TableRecipientPolicy:
		for i, p := range c.RecipientPolicies {
			path := element(name, i)
			add(path, p, func(k *Key) bool { return k.Name == "name" || pos.has(child(path, k.Name)) })
		}
	}
	for _, door := range c.Doors {
		if _, unix := door.Unix(); door.Table == name {
			add(door.Path(), door, func(k *Key) bool {
				unnamed := k.Name == "name" && k.Value == door.Addr
				return k.Value != "" && !unnamed && (unix || k.Name != "socket_mode")
			})
		}
	}
	return all
}

// written returns the next hop of a listener as the file has it: addresses, or a table
// with the keys that it sets.
func (n *NextHop) written(pos positions, path string) any {
	if pos.hopAddr(path) == path {
		return written(reflect.ValueOf(n.Addr))
	}
	set := []Key{}
	for _, k := range keysIn(reflect.ValueOf(*n), path) {
		if pos.has(child(path, k.Name)) && k.Name != "merge" {
			set = append(set, k)
		}
	}
	return set
}

// uselessKeys returns the keys that have no effect in the list.
func (l *List) uselessKeys() map[string]bool {
	useless := map[string]bool{"path": l.Managed, "managed": l.URL != "", "default": l.URL != "", "fleet": !l.Managed && l.URL == ""}
	for _, key := range remoteKeys {
		useless[key] = l.URL == ""
	}
	for _, key := range dnsKeys {
		useless[key] = !l.InDNS()
	}
	if l.InDNS() {
		for _, key := range fileKeys {
			useless[key] = true
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
func noted(pos positions, path string, keys []Key) []Key {
	for i := range keys {
		if p := child(path, keys[i].Name); pos.has(p) {
			line, _ := pos.find(p)
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
	case "console":
		return key == "socket_group"
	case "fleet.server":
		return true // of spamgate-fleetd
	}
	return isDoor(table) && (key == "addr" || key == "name")
}
