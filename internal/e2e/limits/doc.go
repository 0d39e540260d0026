// Package limits proves that the gate stays within its limits under floods, slow clients,
// thousands of idle connections and without file descriptors, and what it uses: memory,
// descriptors, system calls and processor time.
package limits
