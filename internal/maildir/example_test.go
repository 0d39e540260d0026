package maildir_test

import (
	"fmt"
	"os"
	"path/filepath"

	"spamgate/internal/maildir"
)

func Example() {
	parent, err := os.MkdirTemp("", "maildir")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(parent)

	dir, err := maildir.Open(filepath.Join(parent, "mail"))
	if err != nil {
		fmt.Println(err)
		return
	}
	file, err := dir.Create()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer file.Abort() // does nothing after Commit
	fmt.Fprint(file, "Subject: hello\r\n\r\n")
	if err := file.Commit(); err != nil {
		fmt.Println(err)
		return
	}
	text, err := os.ReadFile(filepath.Join(dir.Path(), "new", file.Name()))
	fmt.Printf("%q %v\n", text, err)
	// Output: "Subject: hello\r\n\r\n" <nil>
}
