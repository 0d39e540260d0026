// Package joined runs goroutines that somebody waits for, and hands their panics to who waits. A
// panic in a goroutine of its own ends the process, and with it the mail; in a handler of HTTP
// it ends the request.
package joined

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// Group is a group of goroutines. The zero Group is ready to use.
type Group struct {
	running sync.WaitGroup
	first   sync.Once
	panic   error
}

// Go calls f in a goroutine.
func (g *Group) Go(f func()) {
	g.running.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				g.first.Do(func() { g.panic = fmt.Errorf("panic: %v\n%s", p, debug.Stack()) })
			}
		}()
		f()
	})
}

// Wait waits until all goroutines have ended. It panics if one of them did.
func (g *Group) Wait() {
	g.running.Wait()
	if g.panic != nil {
		panic(g.panic)
	}
}
