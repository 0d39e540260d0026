//go:build !race

package natsserver

import (
	"strings"
	_ "unsafe" // for go:linkname
)

// procStatFile belongs to the NATS server, which reads it each second from the start of the program
// on, even if no server runs. When that fails, it stops. The name that does not exist is as long as
// the right one, so that who reads the variable meanwhile gets one of the two. The race detector
// does not know that.
//
//go:linkname procStatFile github.com/nats-io/nats-server/v2/server/pse.procStatFile
var procStatFile string

func init() { procStatFile = strings.Repeat("-", len(procStatFile)) }
