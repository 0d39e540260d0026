package main

import (
	"net"
	"testing"
)

// TestHears: which connections would come back to the gate itself.
func TestHears(t *testing.T) {
	for _, test := range []struct {
		listen, to string
		want       bool
	}{
		{":25", "127.0.0.1:25", true},
		{":25", "[::1]:25", true},
		{"[::]:25", "127.0.0.1:25", true},
		{"0.0.0.0:25", "127.0.0.1:25", true},
		{"0.0.0.0:25", "[::1]:25", false},
		{"127.0.0.1:25", "127.0.0.1:25", true},
		{"127.0.0.1:25", "127.0.0.2:25", false},
		{"127.0.0.1:25", "0.0.0.0:25", true},
		{"[::1]:25", "[::]:25", true},
		{"192.0.2.1:25", "0.0.0.0:25", false},
		{":25", "127.0.0.1:26", false},
	} {
		addr, err := net.ResolveTCPAddr("tcp", test.listen)
		if err != nil {
			t.Fatal(err)
		}
		to, err := net.ResolveTCPAddr("tcp", test.to)
		if err != nil {
			t.Fatal(err)
		}
		if got := (endpoint{addr: addr}).hears(to); got != test.want {
			t.Errorf("%s from %s: %v", test.to, test.listen, got)
		}
	}
}
