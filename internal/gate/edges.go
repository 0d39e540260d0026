package gate

import (
	"context"
	"net"
	"os"
	"os/exec"
	"time"

	"spamgate/internal/admin"
	"spamgate/internal/logging"
	"spamgate/internal/setup"
	"spamgate/internal/socket"
)

// Edges are what a simulation puts in the place of the world around a gate. Their zero value is the
// real world.
type Edges struct {
	setup.Edges
	Signals   <-chan os.Signal
	Listen    func(*net.TCPAddr) net.Listener
	Admin     func(admin.Options)                          // gets what the admin socket would serve, before clients are accepted
	Successor func() (done chan error, gone chan struct{}) // starts another gate: see successor
	Succeeds  bool                                         // the gate is such a one
}

// Simulate runs a gate as Serve does, between the edges of a simulated world.
func Simulate(ctx context.Context, file string, stderr *logging.Writer, e Edges) error {
	var in *socket.Inherited
	if e.Succeeds {
		in = new(socket.Inherited)
	}
	return serve(ctx, file, stderr, in, "", e)
}

func (e *Edges) startSuccessor(context.Context, time.Duration, string, []socket.Inheritable) (*successor, error) {
	done, gone := e.Successor()
	return &successor{cmd: &exec.Cmd{Process: new(os.Process)}, done: done, gone: gone}, nil
}
