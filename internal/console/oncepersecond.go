package console

import (
	"sync/atomic"
	"time"
)

// oncePerSecond bounds how often something is done.
type oncePerSecond struct{ last atomic.Int64 } // in ns since 1970

// due reports whether it was not done within the last second, and notes that it is done now.
func (o *oncePerSecond) due(now time.Time) bool {
	last := o.last.Load()
	since := now.UnixNano() - last
	return (since >= int64(time.Second) || since < 0) && o.last.CompareAndSwap(last, now.UnixNano())
}
