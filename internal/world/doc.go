// Package world has only tests: a simulation. One seed makes one world: the real code of a part of
// the gate between edges that are false (the disk, the network, the clock, the next hop, the servers
// of a fleet), which delay, cut, fail, lie and die where the seed says. Actors draw their moves from
// the seed, and what must hold is watched. The same seed gives the same world again.
//
//	go test ./internal/world -world.n=1000            # a thousand worlds of each part
//	go test ./internal/world -run Store -world.seed=7 -v  # the story of one
package world
