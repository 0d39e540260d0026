package sender_test

import (
	"fmt"

	"spamgate/blocklist/sender"
)

// Spellings of one mailbox have one normal form.
func ExampleParse() {
	for _, s := range []string{"User@Bücher.example", `<"user"@xn--bcher-kva.example.>`, "user@[192.0.2.1]", "<>", "no-address"} {
		a, err := sender.Parse(s)
		if err != nil {
			fmt.Println("error:", err)
			continue
		}
		fmt.Println(a)
	}
	// Output:
	// user@xn--bcher-kva.example
	// user@xn--bcher-kva.example
	// user@[192.0.2.1]
	// <>
	// error: no domain: there is no "@" in it
}

// A lookup tries the keys of an address from the most specific on.
func ExampleAddress_Walk() {
	a, err := sender.Parse("user+tag@mail.example.com")
	if err != nil {
		fmt.Println(err)
		return
	}
	var buf [512]byte
	w := a.Walk(buf[:0])
	for k, ok := w.Next(); ok; k, ok = w.Next() {
		fmt.Println(k.Rank, k.Kind, string(k.Text))
	}
	// Output:
	// 0 address user+tag@mail.example.com
	// 1 address user@mail.example.com
	// 2 at-domain @mail.example.com
	// 3 domain mail.example.com
	// 4 subdomains *.example.com
	// 5 domain example.com
	// 6 subdomains *.com
	// 7 domain com
	// 8 local user+tag@
	// 9 local user@
}
