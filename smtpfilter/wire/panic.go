package wire

import (
	"fmt"
	"runtime/debug"
)

// contain makes a panic the end of this connection alone. Without it, go-smtp does
// so only for what happens within a command of its own: not before the greeting,
// nor between two commands, where TLS, AUTH and the gate's own commands are, and
// the hooks that they call. Nothing more is said to the client. The error, with the
// stack, is what Read returns from now on, which go-smtp writes to its log.
func (c *Conn) contain(err *error) {
	if p := recover(); p != nil {
		c.panicked = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		c.ended, c.out = true, nil
		*err = c.panicked
	}
}
