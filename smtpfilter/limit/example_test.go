package limit_test

import (
	"fmt"
	"net/netip"

	"spamgate/smtpfilter/limit"
)

func Example() {
	limiter := limit.New(limit.Config{
		Client:  limit.Limits{Connections: 1, MessagesPerMinute: 2},
		Network: limit.Limits{MessagesPerMinute: 100},
	})
	client := netip.MustParseAddr("192.0.2.1")

	ticket, result := limiter.Connect(client)
	fmt.Println("first connection:", result)
	_, result = limiter.Connect(client)
	fmt.Println("second connection:", result)
	for range 3 {
		fmt.Println("message:", limiter.Message(client))
	}
	ticket.Release()
	_, result = limiter.Connect(client)
	fmt.Println("after the first has ended:", result)
	// Output:
	// first connection: allowed
	// second connection: connections of a client: 1
	// message: allowed
	// message: allowed
	// message: messages per minute of a client: 2
	// after the first has ended: allowed
}
