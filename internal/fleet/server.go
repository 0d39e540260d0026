package fleet

// ServerStatus is the state of a NATS server in a gate (package natsserver).
type ServerStatus struct {
	Name    string `json:"name"`
	Listen  string `json:"listen"`
	Running bool   `json:"running"`
	Clients int    `json:"clients"`
	Bytes   int64  `json:"bytes"` // of the store

	Servers   int          `json:"servers"`          // of the cluster, as configured
	Connected int          `json:"connected"`        // of them, this one included
	Leader    string       `json:"leader,omitempty"` // the server that decides; empty: there is no quorum
	Peers     []ServerPeer `json:"peers,omitempty"`  // the others, as far as this server knows them

	// Problems say what is wrong, or was within the last minutes.
	Problems []string `json:"problems,omitempty"`

	// Notes say what is worth knowing, although nothing is wrong with the server: which client it did
	// not let in.
	Notes []string `json:"notes,omitempty"`
}

// ServerPeer is another server of the cluster.
type ServerPeer struct {
	Name      string `json:"name"`
	Connected bool   `json:"connected"`
}
