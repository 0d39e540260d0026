package smtpfilter_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/smtp"
	"os"
	"path/filepath"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/nexthop"
)

// exampleJudge is the Checker of a Judge that rejects one sender.
type exampleJudge struct{}

func (exampleJudge) Judge() verdict.Judge { return exampleAnswers{} }

type exampleAnswers struct{}

func (exampleAnswers) Generation() uint64 { return 1 }

func (exampleAnswers) Judge(_ context.Context, _ *verdict.Message, q verdict.Query) (verdict.Verdict, error) {
	if q.Address == "spam@example.com" {
		return verdict.Verdict{Action: verdict.Reject, Match: verdict.Match{List: "mine"}}, nil
	}
	return verdict.Verdict{}, nil
}

// A gate with its own judge refuses a listed sender, and passes other mail on to a Maildir.
func Example() {
	dir, err := os.MkdirTemp("", "gate")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	hop, err := nexthop.NewMaildir(filepath.Join(dir, "mail"), nil)
	if err != nil {
		log.Fatal(err)
	}
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := smtpfilter.New(smtpfilter.Config{Hostname: "gate.example"})
	listener, err := server.Listen(socket, "", smtpfilter.Settings{
		Checker: exampleJudge{},
		NextHop: hop,
		Policy:  smtpfilter.Policy{RejectText: "{sender} is on list {list}"},
	})
	if err != nil {
		log.Fatal(err)
	}
	go listener.Serve()

	for _, from := range []string{"spam@example.com", "friend@example.com"} {
		err := smtp.SendMail(socket.Addr().String(), nil, from, []string{"me@example.org"}, []byte("Subject: hello\r\n\r\nHello\r\n"))
		fmt.Println(from, err)
	}
	server.Shutdown(context.Background())
	mail, _ := filepath.Glob(filepath.Join(dir, "mail", "new", "*"))
	fmt.Println(len(mail), "message delivered")
	// Output:
	// spam@example.com 550 "5.7.1 spam@example.com is on list mine"
	// friend@example.com <nil>
	// 1 message delivered
}
