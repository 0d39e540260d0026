package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"spamgate/blocklist"
	"spamgate/internal/admin"
	"spamgate/internal/config"
	"spamgate/internal/listedit"
)

// runningGate is the gate that serves the configuration, if there is one.
type runningGate struct {
	client *admin.Client // nil: none, or not to be asked
	err    error         // why nobody knows whether there is one
}

// dialGate looks for a running gate.
func dialGate(c *config.Config) runningGate {
	client, err := admin.Dial(c.Admin.Socket)
	if errors.Is(err, admin.ErrNotRunning) {
		return runningGate{}
	}
	return runningGate{client, err}
}

// warn says on standard error why the gate was not asked, if that is not because
// none is running.
func (g runningGate) warn(stderr io.Writer) {
	if g.err != nil {
		fmt.Fprintf(stderr, "spamgate: %v\n", g.err)
	}
}

func (g runningGate) close() {
	if g.client != nil {
		g.client.Close()
	}
}

// gateAnswer is what the running gate says of a change.
type gateAnswer struct {
	Running    bool   `json:"running"`
	Generation uint64 `json:"generation,omitempty"`
	Error      string `json:"error,omitempty"` // why the change is not live, or not known to be

	// Lacks says that the gate does not have the list before it is reloaded, as
	// Error says, too.
	Lacks bool `json:"lacks_list,omitempty"`

	// Refused says that the gate has looked, and does not serve what is on disk now:
	// it may not read it, or holds it. Error is why.
	Refused bool `json:"not_live,omitempty"`
}

// noListYet says that a gate which has not been reloaded lacks a list that the
// configuration has. Pid is the gate's, 0 where it is not known.
func noListYet(list string, pid int) string {
	process := "PID"
	if pid > 0 {
		process = strconv.Itoa(pid)
	}
	return fmt.Sprintf("the running gate has no list %q yet: reload it (systemctl reload spamgate, or kill -HUP %s)", list, process)
}

// rescan has the gate read the lists now. What it answers is about the one list,
// or with "" about all of them.
func (g runningGate) rescan(ctx context.Context, list string) *gateAnswer {
	switch {
	case g.client == nil && g.err == nil:
		return &gateAnswer{}
	case g.client == nil:
		return &gateAnswer{Error: fmt.Sprintf("%v; if one runs it notices the change by itself", g.err)}
	}
	r, err := g.client.Rescan(ctx)
	if err != nil {
		return &gateAnswer{Running: true, Error: fmt.Sprintf("the gate did not answer (%v); it notices the change by itself", err)}
	}
	for _, failed := range r.Failed {
		if failed.List == list {
			return &gateAnswer{Running: true, Generation: r.Generation, Refused: true, Error: failed.Error}
		}
	}
	answer := &gateAnswer{Running: true, Generation: r.Generation}
	if list == "" {
		return answer
	}
	s, err := g.client.Status(ctx)
	switch {
	case err != nil:
		answer.Error = fmt.Sprintf("the gate has read its lists, and does not say which it has (%v)", err)
	case !hasList(s.Lists, list):
		answer.Lacks, answer.Error = true, noListYet(list, s.PID)
	}
	return answer
}

func hasList(lists []admin.List, name string) bool {
	return slices.ContainsFunc(lists, func(l admin.List) bool { return l.Name == name })
}

// print says whether a change is live.
func (g *gateAnswer) print(w io.Writer) {
	switch {
	case g.Lacks:
		fmt.Fprintln(w, g.Error)
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

// accept lets the gate take the new content although it may be much smaller or
// larger than the old one: somebody asked for it. Where that cannot be noted the
// gate may hold the change, and says so. Nobody has asked for what is held already:
// a change of that is judged with it, and one of a file that was emptied is the
// error, since from then on it would not look emptied.
func (e *editing) accept(ctx context.Context, change listedit.Change) error {
	if _, missing := os.Stat(e.config.State.Dir); e.gate.client == nil && errors.Is(missing, fs.ErrNotExist) {
		return nil // no gate has ever read the list, so none will compare
	}
	if e.command != "rollback" { // which puts back what did serve
		if why := e.held(ctx); why != "" {
			return e.changeHeld(why)
		}
	}
	sum, err := opener(e.list.List).ContentSumWith(e.list.files, e.file, change.SHA256)
	switch {
	case err != nil:
	case e.gate.client != nil:
		_, err = e.gate.client.Accept(ctx, e.list.Name, sum, e.why)
		if errors.Is(err, admin.ErrNoList) {
			return nil // it has never read the list, as rescan says
		}
	default:
		err = acceptContent(e.config, e.list.Name, sum)
	}
	if err != nil {
		fmt.Fprintf(e.stderr, "spamgate: a gate may hold this change for looking wrong: %v\n", err)
	}
	return nil
}

// held is why what is on disk now is held, "" where it is not, or nobody knows.
func (e *editing) held(ctx context.Context) string {
	if e.gate.client != nil {
		r, err := e.gate.client.Rescan(ctx)
		if err != nil {
			return ""
		}
		for _, l := range r.Failed {
			if l.List == e.list.Name && l.Held {
				return l.Error
			}
		}
		return ""
	}
	if versions, err := keptVersions(e.config, e.list.Name); err == nil && len(versions) > 0 {
		if sum, err := opener(e.list.List).ContentSum(e.list.files); err == nil && sum == versions[0].Sum {
			return "" // it went live, and nothing since: no need to read the list
		}
	}
	only := *e.config
	only.Lists = []config.List{e.list.List}
	_, stats, _ := buildReadOnly(ctx, &only, e.stderr) // an error is of the list, and in stats
	if l, ok := statsOf(stats, e.list.Name); ok && l.Held && l.Err != nil {
		return l.Err.Error()
	}
	return ""
}

// changeHeld is about a change of what is held.
func (e *editing) changeHeld(why string) error {
	if info, err := os.Stat(e.file); err == nil && info.Size() == 0 {
		return fmt.Errorf("it is empty, and the list had entries before: spamgate lists rollback %s puts them back; for an empty list write a comment into it", e.list.Name)
	}
	if e.gate.client == nil { // else the answer of the gate says it
		fmt.Fprintf(harmless{e.stderr}, "spamgate: list %s is held, and with this change it is judged anew: %s\n", e.list.Name, why)
	}
	return nil
}

// retryBuild is blocklist.RetryBuild, likewise.
func retryBuild(c *config.Config, list string) error {
	lists, err := blocklistConfig(c, nil)
	if err != nil {
		return err
	}
	return blocklist.RetryBuild(lists, list)
}

// acceptContent is blocklist.AcceptContent for where no gate can be asked.
func acceptContent(c *config.Config, list, sum string) error {
	lists, err := blocklistConfig(c, nil)
	if err != nil {
		return err
	}
	return blocklist.AcceptContent(lists, list, sum)
}
