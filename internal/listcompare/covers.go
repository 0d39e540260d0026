package listcompare

import (
	"slices"

	"spamgate/blocklist/verdict"
	"spamgate/internal/config"
)

// Covers reports whether a match of list b does at least what the same match of list a does,
// wherever a is looked up: a stricter action covers a milder one, any action covers monitor,
// and an override list covers a plain allow list. So does an allow list that asks for no
// proof, or takes every proof that the other takes. The opposites do not hold.
func Covers(b, a config.List) bool {
	if a.Type != b.Type {
		return false
	}
	if len(b.ProvenBy) > 0 && (len(a.ProvenBy) == 0 || slices.ContainsFunc(a.ProvenBy, func(by string) bool { return !slices.Contains(b.ProvenBy, by) })) {
		return false
	}
	for _, stage := range a.Stage {
		if !slices.Contains(b.Stage, stage) || strength(b, stage) < strength(a, stage) {
			return false
		}
	}
	return true
}

// strength orders what the matches of lists of one type do at a stage.
func strength(l config.List, stage string) int {
	if l.Type == "allow" {
		if l.Override {
			return 1
		}
		return 0
	}
	if action := actionAt(l, stage); action != verdict.Monitor {
		return int(action)
	}
	return 0
}

// actionAt returns what a match of a block list asks for at a stage.
func actionAt(l config.List, stage string) verdict.Action {
	text := l.Action
	if stage == "header" && l.HeaderAction != "" {
		text = l.HeaderAction
	}
	return verdict.ActionOf(text)
}
