package listfile_test

import (
	"fmt"
	"strings"

	"spamgate/blocklist/listfile"
)

const list = `# what we do not want
Offers.example       # reported three times  ## ticket 12
!news@offers.example ## the one newsletter that somebody wants
com
`

func ExampleReader() {
	r := listfile.NewReader(strings.NewReader(list), listfile.Options{})
	r.Problem = func(p listfile.Problem) { fmt.Printf("line %d: %s\n", p.Line, p.What) }
	for e, err := range r.All() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("line %d: %s %s, exception %v, reason %q, note %q\n", e.Line, e.Kind, e.Key, e.Exception, e.Reason, e.Note)
	}
	res := r.Result()
	fmt.Println(res.Entries, res.Invalid, res.Lines)
	// Output:
	// line 2: domain offers.example, exception false, reason "reported three times", note "ticket 12"
	// line 3: address news@offers.example, exception true, reason "", note "the one newsletter that somebody wants"
	// line 4: a single label covers every domain below it
	// 2 1 4
}

// Both ways of writing an internationalised domain are one key, and an error
// says what to write instead.
func ExampleParseEntry() {
	for _, text := range []string{"Bücher.example", "xn--bcher-kva.example", "*@*.example.com"} {
		e, err := listfile.ParseEntry(text, listfile.Options{})
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(e.Key)
	}
	// Output:
	// xn--bcher-kva.example
	// xn--bcher-kva.example
	// "*@*.example.com": "*" in the domain; write *.example.com
}
