package edit

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
	"spamgate/internal/listfiles"
	"spamgate/internal/term"
)

// asArguments returns an entry as commands take it.
func asArguments(e listfile.Entry) string {
	side := ""
	if e.For != "" {
		side = " --for " + term.ShellWord(e.For)
	}
	e.For = ""
	return term.ShellWord(listfiles.Written(e)) + side
}

// opposite returns the text of an exception to an entry, or of what an exception is for.
func opposite(e listfile.Entry) string {
	e.Exception = !e.Exception
	return listfiles.Written(e)
}

// checkEntries parses entries given as arguments.
func checkEntries(entries []string, o listfile.Options) ([]listfile.Entry, error) {
	parsed := make([]listfile.Entry, len(entries))
	var errs []error
	for i, text := range entries {
		e, err := listfile.ParseEntry(text, o)
		parsed[i] = e
		errs = append(errs, err)
	}
	return parsed, errors.Join(errs...)
}

// needEntries accepts one or more arguments, all of them entries.
func needEntries(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("no entry: name one or more, such as user@spam.example or spam.example")
	}
	for _, arg := range args {
		if strings.TrimSpace(arg) == "" {
			return errors.New("an empty entry: the null sender is written '<>'")
		}
		if arg == "-" {
			return errors.New(`"-" is not an entry: for those of a file there are "spamgate lists import" and "xargs spamgate lists remove"`)
		}
	}
	return nil
}

// meaning describes what an entry matches.
func meaning(e listfile.Entry) string {
	what := whoseAddress(e.Key, e.Kind)
	if e.For != "" {
		what += ", in mail to " + whoseAddress(e.For, listfile.KindOf(e.For))
	}
	if e.Exception {
		return "lets pass what this list's entries would match of " + what
	}
	return "matches " + what
}

// whoseAddress describes the addresses that a key matches.
func whoseAddress(key string, kind sender.Kind) (what string) {
	name := strings.TrimPrefix(strings.TrimPrefix(key, "*."), "@")
	switch kind {
	case sender.KindAddress:
		what = "the address " + key
	case sender.KindAtDomain:
		what = "every address at exactly " + name
	case sender.KindDomain:
		what = name + " and every subdomain"
	case sender.KindSubdomains:
		what = "the subdomains of " + name + ", not itself"
	case sender.KindLocal:
		what = key + " at any domain"
	case sender.KindNull:
		what = "the null sender <>, which bounces have"
	}
	return what
}
