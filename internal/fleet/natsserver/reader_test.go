package natsserver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"spamgate/internal/fleet/credentials"
)

// TestReaderByReply has a reader that lets the server write for it: an answer goes to the subject
// that the question names, whatever the reader may publish. The reader must not be able to have
// its own text sent.
func TestReaderByReply(t *testing.T) {
	t.Parallel()
	o := options(t, 1)[0]
	start(t, o)
	who, err := credentials.Read(o.Credentials)
	if err != nil {
		t.Fatal(err)
	}
	if who, err = who.ReadOnly(); err != nil {
		t.Fatal(err)
	}
	all := connect(t, nats.Token(token), o)
	members := bucket(t, all, "spamgate-members", 1)
	var streams []string
	for _, name := range []string{"spamgate-lists", "spamgate-state", "spamgate-members"} {
		bucket(t, all, name, 1)
		streams = append(streams, "KV_"+name)
	}
	sent, err := all.SubscribeSync("$KV.spamgate-lists.list.blocked")
	if err != nil {
		t.Fatal(err)
	}
	reader := connect(t, nats.Token(who.Token), o)
	const own = "$KV.spamgate-members.reader.x"
	if _, err := reader.Request(own, []byte("forged"), 10*time.Second); err != nil || get(members, "reader.x") != "forged" {
		t.Fatal("the reader cannot show that it lives", err)
	}
	for _, stream := range streams {
		for subject, question := range map[string]string{
			"$JS.API.DIRECT.GET." + stream + "." + own: "",
			"$JS.API.DIRECT.GET." + stream:             fmt.Sprintf(`{"last_by_subj":%q}`, own),
			"$JS.API.STREAM.MSG.GET." + stream:         fmt.Sprintf(`{"last_by_subj":%q}`, own),
			"$JS.API.CONSUMER.CREATE." + stream:        fmt.Sprintf(`{"stream_name":%q,"config":{"deliver_subject":%q,"ack_policy":"none"}}`, stream, sent.Subject),
		} {
			if err := reader.PublishRequest(subject, sent.Subject, []byte(question)); err != nil {
				t.Fatal(err)
			}
		}
	}
	// The server answers one question after the other: this one is the last.
	if _, err := reader.Request("$JS.API.STREAM.INFO.KV_spamgate-state", nil, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	for {
		msg, err := sent.NextMsg(100 * time.Millisecond)
		if err != nil {
			break
		}
		if string(msg.Data) == "forged" {
			t.Fatal("a reader has changed a list")
		}
	}
}

// TestReaderIsNoProblem has readers try what they may not: the server does not count it as its
// problem.
func TestReaderIsNoProblem(t *testing.T) {
	t.Parallel()
	for _, text := range []string{token, seed(t)} {
		o := options(t, 1)[0]
		log := &logged{}
		o.Logger, o.Credentials = log.logger(), secret(t, text)
		s := start(t, o)
		who, err := credentials.Read(o.Credentials)
		if err != nil {
			t.Fatal(err)
		}
		if who, err = who.ReadOnly(); err != nil {
			t.Fatal(err)
		}
		as := nats.Token(who.Token)
		if who.Seed != "" {
			as = nkey(t, who.Seed)
		}
		refused := make(chan error, 2)
		reader, err := nats.Connect("nats://"+o.Listen, as, nats.Name(`x" - "y`), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		if _, err := reader.SubscribeSync("spamgate.missing"); err != nil {
			t.Fatal(err)
		}
		if err := reader.Publish("$KV.spamgate-leases.clean", nil); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := <-refused; !strings.Contains(err.Error(), "ermissions violation") {
				t.Error(err)
			}
		}
		if _, err := reader.Request("$JS.API.INFO", nil, 10*time.Second); err != nil { // the server has logged both
			t.Fatal(err)
		}
		if st := s.Status(); len(st.Problems) > 0 || strings.Contains(log.String(), "problem") {
			t.Errorf("problems %q, log\n%s", st.Problems, log.String())
		}
	}
}
