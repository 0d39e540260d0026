package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"spamgate/blocklist/store"
	"spamgate/internal/admin"
	"spamgate/internal/config"
	"spamgate/internal/setup"
	"spamgate/internal/term"
)

// RunningGate is the gate that serves the configuration, if there is one.
type RunningGate struct {
	Client *admin.Client // nil: none is running, or it cannot be asked
	Err    error         // why that is not known

	config *config.Config
}

// DialGate connects to the running gate, if there is one.
func DialGate(c *config.Config) RunningGate {
	client, err := admin.Dial(c.Admin.Socket)
	if errors.Is(err, admin.ErrNotRunning) {
		return RunningGate{config: c}
	}
	return RunningGate{client, err, c}
}

// Warn prints why the gate could not be asked, unless none is running.
func (g RunningGate) Warn(stderr io.Writer) {
	if g.Err != nil {
		fmt.Fprintf(stderr, "spamgate: %v\n", g.Err)
	}
}

func (g RunningGate) Close() {
	if g.Client != nil {
		g.Client.Close()
	}
}

// Answer is the answer of the running gate to a change.
type Answer struct {
	Running    bool   `json:"running"`
	Generation uint64 `json:"generation,omitempty"`
	Error      string `json:"error,omitempty"` // why the change is not live, or not known to be

	// Lacks says that the gate does not have the list until it is reloaded. Error says so,
	// too.
	Lacks bool `json:"lacks_list,omitempty"`

	// Refused says that the gate does not use the content on disk: it may not read it, or
	// holds it. Error is the reason.
	Refused bool `json:"not_live,omitempty"`

	// Pinned says that the change is written, and not live since the list is pinned.
	// Error says so, too.
	Pinned bool `json:"pinned,omitempty"`
}

// NoListYet returns the message that the running gate lacks a list until it is reloaded. Pid is
// the gate's process, or 0 if it is not known.
func NoListYet(list string, pid int) string {
	process := "PID"
	if pid > 0 {
		process = strconv.Itoa(pid)
	}
	return fmt.Sprintf("the running gate has no list %q yet: reload it (systemctl reload spamgate, or kill -HUP %s)", list, process)
}

// Rescan has the gate read the lists now. The answer is about one list, or about all if list is
// "".
func (g RunningGate) Rescan(ctx context.Context, list string) *Answer {
	switch {
	case g.Client == nil && g.Err == nil:
		return g.atNextStart(list)
	case g.Client == nil:
		return &Answer{Error: fmt.Sprintf("%v; if one runs it notices the change by itself", g.Err)}
	}
	r, err := admin.Call(ctx, g.Client, admin.OpRescan, admin.None{})
	if err != nil {
		return &Answer{Running: true, Error: fmt.Sprintf("the gate did not answer (%v); it notices the change by itself", err)}
	}
	for _, failed := range r.Failed {
		if failed.List == list {
			return &Answer{Running: true, Generation: r.Generation, Refused: true, Pinned: failed.Pinned, Error: failed.Error}
		}
	}
	answer := &Answer{Running: true, Generation: r.Generation}
	if list == "" {
		return answer
	}
	s, err := admin.Call(ctx, g.Client, admin.OpStatus, admin.None{})
	switch {
	case err != nil:
		answer.Error = fmt.Sprintf("the gate has read its lists, and does not say which it has (%v)", err)
	case !HasList(s.Lists, list):
		answer.Lacks, answer.Error = true, NoListYet(list, s.PID)
	}
	return answer
}

// atNextStart returns the answer if no gate is running. What is written to a pinned list will not
// be live then.
func (g RunningGate) atNextStart(list string) *Answer {
	i := setup.ListIndex(g.config, list)
	if i < 0 {
		return &Answer{}
	}
	pin, err := store.ReadPin(g.config.State.Dir, list)
	if err != nil || pin == nil {
		return &Answer{} // who may not read it may not write the list's state either
	}
	l := g.config.Lists[i]
	paths, err := store.Files([]string{l.Files()})
	if err == nil {
		if sum, err := setup.Opener(l).ContentSum(paths); err == nil && sum == pin.Sum {
			return &Answer{}
		}
	}
	return &Answer{Refused: true, Pinned: true, Error: fmt.Sprintf("list %s is pinned since %s; spamgate lists unpin %s takes what the files have",
		list, pin.Since.Local().Format("2006-01-02 15:04"), term.ShellWord(list))}
}

func HasList(lists []admin.List, name string) bool {
	return slices.ContainsFunc(lists, func(l admin.List) bool { return l.Name == name })
}

// Print prints whether a change is live.
func (g *Answer) Print(w io.Writer) {
	switch {
	case g.Lacks:
		fmt.Fprintln(w, g.Error)
	case g.Pinned:
		term.PrintWrapped(w, "written, but not live: ", g.Error)
	case g.Refused:
		fmt.Fprintln(w, "not live, since the running gate does not take the list as it is now:", g.Error)
	case g.Error != "":
		fmt.Fprintln(w, "not known to be live:", g.Error)
	case g.Running:
		fmt.Fprintf(w, "live in the running gate, generation %d\n", g.Generation)
	default:
		fmt.Fprintln(w, "no gate is running: it will be read at the next start")
	}
}

// IsForFleetd reports whether a configuration that no gate can use is one for spamgate-fleetd.
func IsForFleetd(file string) bool {
	c, err := config.LoadFleetServer(file)
	return err == nil && len(c.Lists) == 0
}
