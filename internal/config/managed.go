package config

import "fmt"

// managed checks the source of a list that the gate keeps.
func (d *document) managed(path string, l *List) {
	for _, k := range []struct{ name, value string }{{"path", l.Path}, {"url", l.URL}} {
		if k.value != "" {
			d.fail(path+"."+k.name, "cannot be combined with managed = true: the gate keeps the list in dir of [state]", "remove one of the two")
		}
	}
	if plain := DefaultList().Format; l.Format != plain && !d.failed[path+".format"] {
		d.fail(path+".format", fmt.Sprintf("cannot be %q in a managed list, which the gate writes", l.Format), "remove the line; spamgate lists import reads other formats")
	}
	d.noRemote(path, l)
}

// defaultLists checks that default is set only in lists that commands can change, and in one
// for each use.
func (d *document) defaultLists() {
	type use struct {
		kind         string
		perRecipient bool
	}
	first := map[use]int{}
	for i := range d.cfg.Lists {
		l, path := &d.cfg.Lists[i], element("list", i)+".default"
		if !l.Default || l.InDNS() {
			continue
		}
		switch {
		case l.URL != "":
			d.fail(path, "has no effect with url: nothing can be added to a list that others publish", "remove the line, or set it in a list with managed = true or path")
		case l.Format != DefaultList().Format:
			d.fail(path, fmt.Sprintf("has no effect with format = %q, which is read and never written", l.Format), `remove the line, or write format = "plain"`)
		}
		u := use{l.Type, l.PerRecipient}
		if j, ok := first[u]; ok {
			line, _ := d.at.find(element("list", j) + ".default")
			d.fail(path, fmt.Sprintf("is already set at line %d, in a list of the same type", line), "set it in one of the two: entries without the name of a list go there")
			continue
		}
		first[u] = i
	}
}
