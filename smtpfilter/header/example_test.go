package header_test

import (
	"fmt"

	"spamgate/smtpfilter/header"
)

func ExampleSenders() {
	section := []byte("Message-ID: <1@mail.example>\r\n" +
		"From : \"Sales, example\" <sales@offers.example>\r\n" +
		"this line is malformed\r\n" +
		"from: (a second one) Offers@News.example, not an address\r\n" +
		"Sender: undisclosed:;\r\n")
	r := header.Senders(section, []string{"From", "Sender", "Reply-To"})
	for _, s := range r.Senders {
		fmt.Println(s.Field, s.Address)
	}
	fmt.Println("empty:", r.Empty)
	fmt.Println("id:", r.MessageID)
	// Output:
	// From sales@offers.example
	// From Offers@News.example
	// empty: [Sender]
	// id: <1@mail.example>
}
