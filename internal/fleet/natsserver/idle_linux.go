package natsserver

import _ "unsafe" // for go:linkname

// procStatFile belongs to the NATS server, which reads it each second from the start of the program
// on, even if no server runs. When that fails, it stops.
//
//go:linkname procStatFile github.com/nats-io/nats-server/v2/server/pse.procStatFile
var procStatFile string

func init() { procStatFile = "" }
