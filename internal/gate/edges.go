package gate

import (
	"context"
	"net"
	"os"
	"os/exec"

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

// openSockets opens the sockets of a listener.
func (e *Edges) openSockets(l *runningListener) {
	for _, s := range l.sockets {
		l.open = append(l.open, e.Listen(s.Addr))
	}
}

// startSuccessor starts another gate.
func (e *Edges) startSuccessor() *successor {
	n := &successor{cmd: &exec.Cmd{Process: new(os.Process)}}
	n.done, n.gone = e.Successor()
	return n
}
