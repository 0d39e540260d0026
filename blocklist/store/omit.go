package store

import (
	"fmt"

	"spamgate/blocklist"
	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
)

// Omissions decides which valid entries a list leaves out. It is the one place that decides
// that: the gate asks it for each entry that it reads, and so do the commands that print,
// compare or export what a list holds.
type Omissions struct {
	protected            *Protected
	nullSender, anywhere bool // leaves out <>, and name@
}

// Omissions returns what the list leaves out, if these names are protected.
func (l *List) Omissions(names *Protected) Omissions {
	var o Omissions
	if l.Type == blocklist.Block && l.OnProtected != AcceptProtected {
		o.protected = names
	}
	if l.URL != "" {
		o.nullSender, o.anywhere = !l.AllowNullSender, !l.AllowLocalParts
	}
	return o
}

// Of returns why the list leaves out an entry. It never leaves out an exception.
func (o Omissions) Of(e *listfile.Entry) Omission {
	switch {
	case e.Exception:
	case e.Kind == sender.KindNull && o.nullSender:
		return Omission{reason: nullSender}
	case e.Kind == sender.KindLocal && o.anywhere:
		return Omission{reason: localPart}
	default:
		if name, entirely := o.protected.covered(e.Kind, e.Key); entirely {
			return Omission{coversProtected, name}
		} else if name != "" {
			return Omission{belowProtected, name}
		}
	}
	return Omission{}
}

// Omission is why a list leaves out a valid entry. The zero Omission stands for an entry that
// counts.
type Omission struct {
	reason omissionReason
	name   string // that is protected
}

type omissionReason uint8

const (
	included omissionReason = iota
	coversProtected
	belowProtected
	nullSender
	localPart
)

// Omitted reports whether the entry is left out.
func (o Omission) Omitted() bool { return o.reason != included }

// Protected returns the protected name because of which the entry is left out; "" if it is
// left out for another reason, or not.
func (o Omission) Protected() string { return o.name }

// Entirely reports whether the entry covers all of the protected name.
func (o Omission) Entirely() bool { return o.reason == coversProtected }

// What says why the entry is left out, and Hint what to do about it.
func (o Omission) What() string {
	switch o.reason {
	case coversProtected:
		return fmt.Sprintf("it covers all of %s, which is protected", o.name)
	case belowProtected:
		return fmt.Sprintf("it covers names below %s, which is protected with its subdomains", o.name)
	case nullSender:
		return "the null sender, which all bounces have; a list from a URL does not decide about it"
	case localPart:
		return "it matches at every domain; in a list from a URL such entries do not count"
	}
	return ""
}

// Hint returns what to write if the entry should count.
func (o Omission) Hint() string {
	switch o.reason {
	case coversProtected:
		return `list single addresses there, or set on_protected = "accept" for this list`
	case belowProtected:
		return fmt.Sprintf(`list single addresses there, write "@%s" in protect to protect that name alone, or set on_protected = "accept" for this list`, o.name)
	case nullSender:
		return "set allow_null_sender = true for this list if it should count"
	case localPart:
		return "set allow_local_parts = true for this list if it should count"
	}
	return ""
}

// problem describes an entry that was left out.
func (o Omission) problem(path string, e *listfile.Entry) blocklist.FileProblem {
	text := e.Key
	if e.For != "" {
		text = e.For + " " + e.Key
	}
	return blocklist.FileProblem{
		File: path, Protected: o.name != "", Disallowed: o.name == "",
		Problem: listfile.Problem{Line: e.Line, Text: text, What: o.What(), Hint: o.Hint()},
	}
}
