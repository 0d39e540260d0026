package gate

import (
	"context"
	"encoding/json"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"spamgate/internal/config"
	"spamgate/internal/fleet"
	"spamgate/internal/setup"
)

// firstWait bounds how long a start waits for shared lists that this gate never had.
const firstWait = 30 * time.Second

// awaitFirst waits for the first version of the shared lists that this gate never had, and of
// which it has no entry: without them it would accept what the other gates refuse. It is called
// once, before the gate has a store. A list that the gate had before delays nothing. It calls waiting
// before it waits.
func (f *fleetPart) awaitFirst(ctx context.Context, c *config.Config, waiting func(*config.Config)) {
	if !c.Fleet.On() || f.hasLeft() {
		return
	}
	o, err := setup.Fleet(c)
	if err == nil {
		o.Lists, err = fleet.Missing(o)
	}
	if err != nil || len(o.Lists) == 0 {
		return // configure says what is wrong
	}
	waiting(c)
	ctx, cancel := context.WithTimeout(ctx, firstWait)
	defer cancel()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM) // nothing else handles signals at this time
	defer stop()
	began := time.Now()
	f.log.Info("waiting for the first version of shared lists", "lists", namesOf(o.Lists), "at_most", firstWait)
	daemon.SdNotify(false, "STATUS=waiting for the first version of the fleet's lists: "+namesOf(o.Lists))
	defer daemon.SdNotify(false, "STATUS=")
	missing := f.takeFirst(ctx, o)
	if len(missing) == 0 {
		f.log.Info("the shared lists are here", "lists", namesOf(o.Lists), "after", time.Since(began))
		return
	}
	f.log.Warn("serving without the first version of shared lists", "lists", namesOf(missing), "after", time.Since(began))
}

// takeFirst is a member until it has the first version of some lists, and returns those that it
// did not get.
func (f *fleetPart) takeFirst(ctx context.Context, o fleet.Options) (missing []fleet.List) {
	if f.unlock = f.lock(ctx); f.unlock == nil {
		return o.Lists
	}
	o.Logger = f.log
	o.StateChanged = func(string, json.RawMessage) error { return fleet.ErrNotShared } // the next member uses the values
	m, err := fleet.Open(o)
	if err != nil {
		return o.Lists
	}
	defer m.Close()
	for _, l := range o.Lists {
		if m.AwaitFirst(ctx, l.Name) != nil {
			missing = append(missing, l)
		}
	}
	return missing
}

func namesOf(lists []fleet.List) string {
	var names []string
	for _, l := range lists {
		names = append(names, l.Name)
	}
	return strings.Join(names, ", ")
}
