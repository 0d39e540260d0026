package natsserver

import (
	"fmt"
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
