package wire_test

import (
	"slices"
	"strings"
	"testing"

	"spamgate/internal/smtptest"
)

// TestDialogues plays every file of testdata/dialogues against a wire.Conn below
// go-smtp's server, whose session accepts all mail. Package smtptest describes
// the format and what the client and the server say. The other lines of the
// set-up are:
//
//	next KEYWORD…             what the next hop offers too, with parameters after '='; "next -" for nothing
//	limit N, recipients N, errors N
//	tls offered|required|implicit
//	auth                      Config.Auth is the test's: see authenticate
//	trusted PREFIX, proxy PREFIX
//	delay DURATION, reject    the greeting delay; the server refuses clients that do not wait for it
//	refuse ADDRESS REPLY      Config.Connected refuses this client
//	erred N REPLY             Config.Erred returns this reply at the Nth error
//
// There is one other step:
//
//	event TEXT                a call of the session or of a hook, in order; "event -" for none
func TestDialogues(t *testing.T) { smtptest.Play(t, playDialogue) }

func playDialogue(t *testing.T, file *smtptest.Dialogue) {
	gate := newTestGate(t)
	file.Each(t, file.SetUp, gate.setUp)
	gate.start(t)
	client := gate.dial(t)
	var want []string
	checked := false // the file lists the events
	file.Each(t, file.Steps, func(l smtptest.Line) error {
		if l.Verb != "event" {
			return client.Play(l)
		}
		checked = true
		if l.Text != "-" {
			want = append(want, l.Text)
		}
		return nil
	})
	client.Conn.Close()
	gate.stop(t)
	if got := gate.recorded(); checked && !slices.EqualFunc(want, got, smtptest.Match) {
		t.Errorf("%s: events\n\t%s\nwant\n\t%s", file.File, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}
