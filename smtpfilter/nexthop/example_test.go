package nexthop_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"spamgate/smtpfilter/nexthop"
)

func ExampleParse() {
	fmt.Println(nexthop.Parse("smtp://mail.example.net"))
	fmt.Println(nexthop.Parse("maildir:mail"))
	// Output:
	// smtp://mail.example.net:25 <nil>
	// maildir:mail <nil>
}

// A message goes in as it stood on the wire, dots stuffed and CRLF line ends,
// without the final dot.
func Example() {
	dir, err := os.MkdirTemp("", "mail")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	target, err := nexthop.New("maildir:"+dir, nexthop.SMTPConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer target.Close()

	ctx := context.Background()
	tx := target.Begin(nexthop.Envelope{From: "ann@example.com"})
	defer tx.Abort() // does nothing after Commit
	if reply, err := tx.Rcpt(ctx, "bob@example.net", nil); err != nil || !reply.Positive() {
		fmt.Println(reply, err)
		return
	}
	message, reply, err := tx.Data(ctx, nexthop.Stuffed)
	if message == nil {
		fmt.Println(reply, err)
		return
	}
	fmt.Fprint(message, "Subject: hello\r\n\r\n..hidden is what it is not\r\n")
	reply, err = message.Commit(ctx)
	fmt.Println(reply.Code, err)

	files, _ := filepath.Glob(filepath.Join(dir, "new", "*"))
	text, _ := os.ReadFile(files[0])
	fmt.Print(strings.ReplaceAll(string(text), "\r\n", "\n"))
	// Output:
	// 250 <nil>
	// Return-Path: <ann@example.com>
	// Subject: hello
	//
	// .hidden is what it is not
}
