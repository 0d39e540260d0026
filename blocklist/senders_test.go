package blocklist

import (
	"fmt"
	"testing"

	"spamgate/blocklist/sender"
)

// coldSenders makes n different senders of three labels, none of them listed.
func coldSenders(tb testing.TB, n int) []sender.Address {
	senders := make([]sender.Address, n)
	for i := range senders {
		senders[i] = parse(tb, fmt.Sprintf("user%d@mx%d.host%d.example", i*7919%10007, i%13, i))
	}
	return senders
}
