package hashattack

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/net/publicsuffix"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
)

// minTarget is the length of the shortest target. BP depends on the last four bytes
// of a name, or on a shorter name as a whole, which no other name shares.
const minTarget = 4

// readTarget returns the normal form of a domain that can be attacked.
func readTarget(text string) (string, error) {
	e, err := listfile.ParseEntry(text, listfile.Options{})
	if problem := (listfile.Problem{}); errors.As(err, &problem) {
		return "", fmt.Errorf("target %q: %s: give a domain that somebody owns, such as example.com", problem.Text, problem.What)
	}
	switch {
	case e.Kind != sender.KindDomain || e.Exception:
		return "", fmt.Errorf("target %q is not a plain domain: give the domain alone, such as example.com", text)
	case len(e.Key) < minTarget:
		return "", fmt.Errorf("target %q is too short: give a domain of at least %d bytes, such as example.com", text, minTarget)
	case searched+maxBetween+len(ending(e.Key)) > maxName:
		return "", fmt.Errorf("target %q: its public suffix of %d bytes is too long for names under it: give a domain under a shorter one",
			text, len(ending(e.Key)))
	}
	return e.Key, nil
}

// ending returns the end of a target that the names share: the public suffix with
// its dot, so that somebody could register them, and at least four bytes, on which
// BP depends.
func ending(target string) string {
	suffix := target
	for {
		s, icann := publicsuffix.PublicSuffix(suffix)
		_, parent, more := strings.Cut(s, ".")
		suffix = s
		if icann || !more {
			break
		}
		suffix = parent // of a private suffix such as github.io
	}
	n := min(len(target), max(minTarget, len(suffix)+len(".")))
	return target[len(target)-n:]
}

// checkName returns an error if a name cannot be listed, or not without listing the
// target: an entry also matches subdomains.
func checkName(name, target string) error {
	e, err := listfile.ParseEntry(name, listfile.Options{})
	switch {
	case err != nil:
		return err
	case e.Key != name || e.Kind != sender.KindDomain:
		return fmt.Errorf("%q is not a domain in normal form", name)
	case strings.HasSuffix("."+target, "."+name):
		return fmt.Errorf("%q lists %q itself", name, target)
	case strings.HasSuffix("."+name, "."+target):
		return fmt.Errorf("%q belongs to the owner of %q", name, target)
	}
	return nil
}
