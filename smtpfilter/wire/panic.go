package wire

import (
	"fmt"
	"runtime/debug"
)

// contain recovers from a panic and ends this connection without another reply.
// go-smtp recovers only within its own commands: not before the greeting, nor in TLS,
// AUTH, the gate's own commands, and the hooks that they call. Read returns the error
// with the stack from then on, which go-smtp logs.
func (c *Conn) contain(err *error) {
	if p := recover(); p != nil {
		c.panicked = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		c.ended, c.out = true, nil
		*err = c.panicked
	}
}
