package config

import (
	"fmt"
	"regexp"
	"slices"

	"spamgate/blocklist/verdict"
)

// Values of [[list]] keys that several checks use.
const (
	typeBlock = "block"
	typeAllow = "allow"

	proofSPF  = "spf"
	proofDKIM = "dkim"

	stageEnvelope = "envelope"
	stageHeader   = "header"
)

// proofs are the values of proven_by.
var proofs = []string{proofSPF, proofDKIM}

// maxListName keeps the names of files and directories that contain a list's name
// below the 255 bytes that file systems allow.
const maxListName = 100

var listName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// checkLists checks each [[list]], and that no two have the same name.
func (d *document) checkLists() {
	if len(d.cfg.Lists) == 0 && !d.failed[element("list", 0)] && !d.serverOnly {
		d.fail("list", "is missing: without a list the gate checks nothing",
			`add a line [[list]] and below it name = "blocked" and path = "lists/blocked.txt"`)
	}
	first := map[string]int{}
	for i := range d.cfg.Lists {
		l, path := &d.cfg.Lists[i], element("list", i)
		if j, ok := first[l.Name]; ok && l.Name != "" {
			line, _ := d.pos.find(element("list", j))
			d.fail(path+".name", fmt.Sprintf("%q is also the name of the list at line %d", l.Name, line), "give each list its own name")
		} else {
			first[l.Name] = i
		}
		d.list(path, l)
	}
	d.defaultLists()
}

// list checks one [[list]] by itself.
func (d *document) list(path string, l *List) {
	switch {
	case l.Name == "":
		d.fail(path+".name", "is missing", `write name = "blocked"; the log and replies show it`)
	case !listName.MatchString(l.Name):
		d.fail(path+".name", fmt.Sprintf("%q is not a valid name", l.Name), `use letters, digits, ".", "_" and "-"`)
	case l.Name == "." || l.Name == "..":
		d.fail(path+".name", fmt.Sprintf("%q is not a valid name: the state directory has a directory with the list's name", l.Name), "use letters or digits too")
	case len(l.Name) > maxListName:
		d.fail(path+".name", fmt.Sprintf("has %d bytes, more than %d", len(l.Name), maxListName), "write a shorter name")
	}
	if l.Type == typeAllow && !d.pos.has(path+".action") {
		l.Action = ""
	}
	d.source(path, l)
	d.shared(path, l)
	if l.Type == typeAllow && l.OnProtected != DefaultList().OnProtected {
		d.fail(path+".on_protected", "has no effect in an allow list, which blocks nobody", `remove the line, or write type = "block"`)
	}
	if len(l.Stage) == 0 {
		d.fail(path+".stage", "is empty, so that the list is never used", `write ["envelope"], ["header"] or both`)
	}
	d.choices(path+".stage", l.Stage, []string{stageEnvelope, stageHeader})
	d.provenBy(path, l)
	if l.PerRecipient && l.Format != "plain" && !l.InDNS() && !d.failed[path+".format"] {
		d.fail(path+".per_recipient", fmt.Sprintf("does not go with format = %q, whose lines have no recipient", l.Format),
			`write lines "RECIPIENT ENTRY" and format = "plain", or remove the line`)
	}
	switch l.Type {
	case typeAllow:
		for key, action := range map[string]string{"action": l.Action, "header_action": l.HeaderAction} {
			if action != "" {
				d.fail(path+"."+key, "cannot be set in an allow list", `remove the line, or write type = "block"`)
			}
		}
	case typeBlock:
		d.blockList(path, l)
	}
}

// provenBy checks the proofs that the entries of an allow list need.
func (d *document) provenBy(path string, l *List) {
	path += ".proven_by"
	d.choices(path, l.ProvenBy, proofs)
	switch {
	case len(l.ProvenBy) == 0 || d.failedBelow(path):
	case l.Type != typeAllow:
		d.fail(path, "has an effect only in an allow list: a block entry counts for forged senders too", `remove the line, or write type = "allow"`)
	case slices.Contains(l.ProvenBy, proofDKIM):
	case !slices.Contains(l.Stage, stageEnvelope):
		d.fail(path, `proves no sender in the header, so that the list never counts: SPF is about MAIL FROM`, `add "dkim", or add "envelope" to stage`)
	case slices.Contains(l.Stage, stageHeader) && !l.Override && len(d.cfg.Headers.Check) > 0:
		d.warn(path, "proves no sender in the header: SPF is about MAIL FROM, so that block lists count for the same address in From:", `add "dkim", or write override = true, which clears the header too`)
	}
}

func (d *document) blockList(path string, l *List) {
	if l.Override {
		d.fail(path+".override", "has an effect only in an allow list", `remove the line, or write type = "allow"`)
	}
	d.action(path+".action", l.Action, blockActions)
	switch {
	case l.HeaderAction == "":
	case !slices.Contains(l.Stage, stageHeader):
		d.fail(path+".header_action", `has no effect, since stage lacks "header"`, `remove the line, or add "header" to stage`)
	default:
		d.action(path+".header_action", l.HeaderAction, blockActions)
	}
}

// blockActions are the actions of block lists: the strictest first, then monitor.
var blockActions = func() []string {
	all := verdict.Actions()[verdict.Tag:verdict.Monitor]
	slices.Reverse(all)
	return append(all, verdict.Monitor.String())
}()

// action checks an action that is one of some.
func (d *document) action(path, action string, names []string) {
	if d.oneOf(path, action, names...) && verdict.ActionOf(action).Drops() && !d.cfg.Policy.AllowDiscard {
		d.fail(path, fmt.Sprintf("%q loses mail without telling anyone", action),
			`write allow_discard = true in [policy] if that is intended, or another action`)
	}
}
