package config

import (
	"fmt"
	"regexp"
	"slices"
)

// Values of [[list]] keys that several checks speak of.
const (
	typeBlock = "block"
	typeAllow = "allow"

	actionDiscard = "discard"

	stageEnvelope = "envelope"
	stageHeader   = "header"
)

var actions = []string{"reject", "defer", actionDiscard, "tag", "monitor"}

// maxListName keeps the files and directories that are called after a list well
// below the 255 bytes that file systems take.
const maxListName = 100

var listName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// checkLists checks each [[list]], and what they are together.
func (d *document) checkLists() {
	if len(d.cfg.Lists) == 0 && !d.failed[element("list", 0)] {
		d.fail("list", "there is none, so the gate would check nothing",
			`add a line [[list]] and below it name = "blocked" and path = "lists/blocked.txt"`)
	}
	first := map[string]int{}
	for i := range d.cfg.Lists {
		l, path := &d.cfg.Lists[i], element("list", i)
		if j, ok := first[l.Name]; ok && l.Name != "" {
			line, _ := d.at.find(element("list", j))
			d.fail(path+".name", fmt.Sprintf("%q is also the name of the list at line %d", l.Name, line), "give each list its own")
		} else {
			first[l.Name] = i
		}
		d.list(path, l)
	}
}

// list checks one [[list]] by itself.
func (d *document) list(path string, l *List) {
	switch {
	case l.Name == "":
		d.fail(path+".name", "is missing", `write name = "blocked", which log and replies will show`)
	case !listName.MatchString(l.Name):
		d.fail(path+".name", fmt.Sprintf("%q is no name", l.Name), `use letters, digits, ".", "_" and "-"`)
	case l.Name == "." || l.Name == "..":
		d.fail(path+".name", fmt.Sprintf("%q is no name: what is kept of a list is in a directory that is called so", l.Name), "use letters or digits too")
	case len(l.Name) > maxListName:
		d.fail(path+".name", fmt.Sprintf("has %d bytes, more than %d", len(l.Name), maxListName), "write a shorter one")
	}
	d.source(path, l)
	d.guards(path, l)
	d.oneOf(path+".match", l.Match, "subtree", "exact")
	d.stages(path+".stage", l.Stage)
	if !d.oneOf(path+".type", l.Type, typeBlock, typeAllow) {
		return // what else is right depends on it
	}
	if l.Type == typeAllow {
		d.allowList(path, l)
	} else {
		d.blockList(path, l)
	}
}

func (d *document) stages(path string, stages []string) {
	if len(stages) == 0 {
		d.fail(path, "is empty, so the list would never be asked", `write ["envelope"], ["header"] or both`)
	}
	for i, s := range stages {
		if !d.oneOf(element(path, i), s, stageEnvelope, stageHeader) {
			continue
		}
		if slices.Contains(stages[:i], s) {
			d.fail(element(path, i), fmt.Sprintf("%q is there twice", s), "remove one")
		}
	}
}

func (d *document) allowList(path string, l *List) {
	if l.Action != "" {
		d.fail(path+".action", "an allow list has none", `remove the line, or write type = "block"`)
	}
	if l.HeaderAction != "" {
		d.fail(path+".header_action", "an allow list has none", `remove the line, or write type = "block"`)
	}
}

func (d *document) blockList(path string, l *List) {
	if l.Override {
		d.fail(path+".override", "only an allow list can override", `remove the line, or write type = "allow"`)
	}
	d.action(path+".action", l.Action)
	if l.HeaderAction == "" {
		return
	}
	if !slices.Contains(l.Stage, stageHeader) {
		d.fail(path+".header_action", `never happens, as stage is without "header"`, `remove the line, or add "header" to stage`)
		return
	}
	d.action(path+".header_action", l.HeaderAction)
}

func (d *document) action(path, action string) {
	if d.oneOf(path, action, actions...) && action == actionDiscard && !d.cfg.Policy.AllowDiscard {
		d.fail(path, `"discard" loses mail without telling anyone`,
			`write allow_discard = true in [policy] if that is meant, or another action`)
	}
}
