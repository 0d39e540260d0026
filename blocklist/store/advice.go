package store

import "fmt"

// Remedy is something that may be done about a list that fails.
type Remedy int

const (
	AcceptHeld   Remedy = iota // accept what is held, see [AcceptContent]
	RetryKilled                // try once more to read it, see [RetryBuild]
	FetchFirst                 // fetch the list's file, which was never fetched
	FetchAgain                 // fetch the list's file again, which has gone
	UnpinFirst                 // unpin the list, see [UnpinList]
	RestoreFiles               // restore the files, which have gone, from history: see [Versions]
)

// advise adds to a list's error how the program's user gets the remedy, if
// [Config.Advise] says so.
func (s *source) advise(err error, r Remedy) error {
	if s.advice == nil {
		return err
	}
	separator := ";"
	if r == FetchFirst {
		separator = ":"
	}
	return fmt.Errorf("%w%s %s", err, separator, s.advice(s.list.Name, r))
}
