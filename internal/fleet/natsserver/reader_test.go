package natsserver

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"spamgate/internal/fleet"
	"spamgate/internal/fleet/credentials"
)

// asReader returns the options of a connection of a reader of that name, with the credentials of
// another one if from is another name.
func asReader(t *testing.T, o Options, name, from string) []nats.Option {
	t.Helper()
	who, err := credentials.Read(o.Credentials)
	if err == nil {
		who, err = who.ReadOnly(from)
	}
	if err != nil {
		t.Fatal(err)
	}
	as := nats.Token(who.Token)
	if who.Seed != "" {
		as = nkey(t, who.Seed)
	}
	return []nats.Option{as, nats.Name(fleet.ClientName(name)), nats.CustomInboxPrefix(fleet.Inbox(name))}
}

// startMember starts a gate that shares a list, which is not small.
func startMember(t *testing.T, o Options, name string) *fleet.Member {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "managed", "blocked.txt")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&text, "%x.example\n", uint32(i)*0x9e3779b1)
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := fleet.Open(fleet.Options{
		Name: name, Servers: []string{"nats://" + o.Listen}, Credentials: o.Credentials, StateDir: dir,
		Lists: []fleet.List{{Name: "blocked", Kind: fleet.Managed, Path: file, MaxBytes: 64 << 20}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	eventually(t, "the list is published", func() bool { s := m.Status(); return s.Connected && s.Lists[0].Sequence > 0 })
	if err := m.SetState(t.Context(), fleet.StateKey("pin", "blocked"), func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage("1"), nil }); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestReaderChangesNothing has a reader try what it can: each subject, with each subject for the
// reply. It can only ask the members, which answer to its own inbox, and show itself.
func TestReaderChangesNothing(t *testing.T) {
	t.Parallel()
	for kind, text := range map[string]string{"token": token, "nkey": seed(t)} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			o := options(t, 1)[0]
			o.Credentials = secret(t, text)
			start(t, o)
			m := startMember(t, o, "mx1")
			as := nats.Token(token)
			if kind == "nkey" {
				as = nkey(t, text)
			}
			all := connect(t, as, o)
			js, err := jetstream.New(all)
			if err != nil {
				t.Fatal(err)
			}
			last := func() (sequences []uint64) {
				for _, name := range []string{"KV_spamgate-lists", "KV_spamgate-state", "OBJ_spamgate-content"} {
					stream, err := js.Stream(t.Context(), name)
					if err != nil {
						t.Fatal(err)
					}
					sequences = append(sequences, stream.CachedInfo().State.LastSeq, stream.CachedInfo().State.Msgs)
				}
				return sequences
			}
			before := last()

			refused := make(chan error, 1000)
			reader, err := nats.Connect("nats://"+o.Listen, append(asReader(t, o, "dmz1", "dmz1"),
				nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))...)
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()

			replies := []string{
				"$KV.spamgate-lists.list.blocked", "$KV.spamgate-state.pin.blocked", "$KV.spamgate-members.mx1.x", "$KV.spamgate-leases.clean",
				"$O.spamgate-content.M.x", "$JS.API.STREAM.PURGE.KV_spamgate-lists", "$JS.API.STREAM.DELETE.KV_spamgate-state",
				"_INBOX.x", "_INBOX.mx1.x", "_INBOX.dmz2.x", "_INBOX.dmz1", "_INBOX.dmz11.x", "spamgate.ask.changed", "spamgate.missing", "spamgate.read.dmz1",
			}
			spy, err := all.SubscribeSync(">")
			if err != nil {
				t.Fatal(err)
			}
			if err := all.Flush(); err != nil {
				t.Fatal(err)
			}
			questions := []string{
				`{"do":"list","key":"list.blocked"}`, `{"do":"history","key":"list.blocked"}`, `{"do":"state"}`, `{"do":"alive","sign":{"name":"dmz1","instance":"x"}}`,
				`{"do":"object","key":"x"}`, `{"do":"chunk","nuid":"x"}`, `{"do":"gone","sign":{"name":"mx1","instance":"x"}}`, `{"do":"purge"}`, `x`, ``,
			}
			asked := 0
			for _, question := range questions {
				for _, reply := range replies {
					if err := reader.PublishRequest(fleet.ReadSubject("dmz1"), reply, []byte(question)); err != nil {
						t.Fatal(err)
					}
					asked++
				}
			}
			tries := 0
			for _, subject := range []string{
				"$JS.API.INFO", "$JS.API.STREAM.INFO.KV_spamgate-lists", "$JS.API.STREAM.MSG.GET.KV_spamgate-members", "$JS.API.DIRECT.GET.KV_spamgate-lists",
				"$JS.API.DIRECT.GET.KV_spamgate-lists.$KV.spamgate-lists.list.blocked", "$JS.API.CONSUMER.CREATE.KV_spamgate-lists", "$JS.API.STREAM.PURGE.KV_spamgate-lists",
				"$JS.API.STREAM.CREATE.x", "$JS.API.STREAM.DELETE.KV_spamgate-state", "$JS.FC.x", "$JS.ACK.x", "$KV.spamgate-lists.list.blocked", "$KV.spamgate-state.pin.blocked",
				"$KV.spamgate-members.dmz1.x", "$KV.spamgate-members.mx1.x", "$O.spamgate-content.M.x", "spamgate.read.dmz2", "spamgate.read.mx1", "spamgate.ask.lists",
				"spamgate.ask.changed", "spamgate.missing", "_INBOX.mx1.x", "_INBOX.dmz1.x", "$SYS.REQ.SERVER.PING", "x",
			} {
				for _, reply := range replies {
					if err := reader.PublishRequest(subject, reply, []byte(`{"last_by_subj":"$KV.spamgate-lists.list.blocked"}`)); err != nil {
						t.Fatal(err)
					}
					tries++
				}
			}
			for _, subject := range []string{">", "_INBOX.>", "_INBOX.mx1.>", "_INBOX.dmz1", "$KV.>", "$JS.>", "spamgate.read.*", "spamgate.missing"} {
				if _, err := reader.SubscribeSync(subject); err != nil {
					t.Fatal(err)
				}
				tries++
			}
			for range tries {
				if err := <-refused; !strings.Contains(err.Error(), "ermissions violation") {
					t.Error(err)
				}
			}
			// The members take one question after the other: these are the last.
			for _, question := range []string{`{"do":"state"}`, `{"do":"alive","sign":{"name":"mx1","instance":"x"}}`, `{"do":"alive","sign":{"name":"dmz1","instance":"x.y"}}`, `{"do":"alive","sign":{"name":"dmz1","instance":"x","time":"2026-11-01T12:00:00Z"}}`} {
				msg, err := reader.Request(fleet.ReadSubject("dmz1"), []byte(question), 10*time.Second)
				if err != nil {
					t.Fatal(err)
				}
				if failed := strings.Contains(string(msg.Data), `"error"`); failed != (strings.Contains(question, "mx1") || strings.Contains(question, "x.y")) {
					t.Errorf("%s: %s", question, msg.Data)
				}
			}
			seen := 0
			for {
				msg, err := spy.NextMsg(100 * time.Millisecond)
				if err != nil {
					break
				}
				if msg.Subject == "spamgate.read.dmz1" {
					seen++
				} else if slices.Contains(replies, msg.Subject) {
					t.Errorf("somebody wrote %q to %s", msg.Data, msg.Subject)
				}
			}
			if seen < asked {
				t.Errorf("%d of %d questions arrived", seen, asked)
			}
			if after := last(); !slices.Equal(before, after) {
				t.Errorf("the streams had %v and have %v", before, after)
			}
			members, err := m.Members(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			names := []string{}
			for _, p := range members {
				names = append(names, fmt.Sprint(p.Name, p.ReadOnly))
			}
			if got := strings.Join(names, " "); got != "dmz1true mx1false" {
				t.Errorf("members: %s", got)
			}
		})
	}
}

// TestReaderOfAnotherName connects with the read-only credentials of another name, and without a
// name.
func TestReaderOfAnotherName(t *testing.T) {
	t.Parallel()
	for _, text := range []string{token, seed(t)} {
		o := options(t, 1)[0]
		o.Credentials = secret(t, text)
		start(t, o)
		for name, want := range map[string]bool{"dmz1": true, "dmz2": false, "": false} {
			nc, err := nats.Connect("nats://"+o.Listen, asReader(t, o, name, "dmz1")...)
			if (err == nil) != want {
				t.Errorf("as %q: %v", name, err)
			}
			if err == nil {
				nc.Close()
			}
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
		start(t, o)
		refused := make(chan error, 2)
		reader, err := nats.Connect("nats://"+o.Listen, append(asReader(t, o, `x" - "y`, `x" - "y`),
			nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))...)
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
			if err := <-refused; !strings.Contains(err.Error(), "ermissions violation") { // the server has logged it
				t.Error(err)
			}
		}
		if strings.Contains(log.String(), "problem") {
			t.Error(log.String())
		}
	}
}
