package nexthop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"testing"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter/wire"
)

var (
	chunking = []string{"8BITMIME", "CHUNKING", "BINARYMIME"}
	ahead    = []string{"PIPELINING", "8BITMIME", "CHUNKING", "BINARYMIME"}
)

// beginAs opens a message in a format.
func beginAs(target Target, f Format) (Transaction, Message, error) {
	ctx := context.Background()
	tx := target.Begin(Envelope{Client: testClient, From: "a@example.com"})
	reply, err := tx.Rcpt(ctx, "b@example.net", nil)
	if err == nil && !reply.Positive() {
		err = errors.New(reply.String())
	}
	if err != nil {
		return tx, nil, err
	}
	m, reply, err := tx.Data(ctx, f)
	if err == nil && m == nil {
		err = errors.New(reply.String())
	}
	return tx, m, err
}

// deliverAs sends one message in a format, in the pieces that cut gives.
func deliverAs(target Target, f Format, body []byte, cut func(left int) int) (wire.Reply, error) {
	_, m, err := beginAs(target, f)
	if err != nil {
		return wire.Reply{}, err
	}
	for len(body) > 0 {
		n := cut(len(body))
		if _, err := m.Write(body[:n]); err != nil {
			m.Abort()
			return wire.Reply{}, err
		}
		body = body[n:]
	}
	return m.Commit(context.Background())
}

// TestFormatsArriveIdentical sends messages in all formats to servers that take chunks,
// and all but Binary to a server that does not, and Raw to a Maildir. The latter need the
// last line complete.
func TestFormatsArriveIdentical(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	dir := t.TempDir()
	box, err := NewMaildir(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	sizes := []int{0, 1, 2, 3, 100, bodyBuffer - 3, bodyBuffer - 2, bodyBuffer - 1, bodyBuffer, chunkSize - 1, chunkSize, chunkSize + 1, 500_000}
	for name, extensions := range map[string][]string{"data": {"8BITMIME"}, "chunks": chunking, "ahead": ahead} {
		sink := smtptest.NewSink(t, smtptest.Config{Extensions: extensions})
		hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Reuse: true, Chunks: true})
		check := func(f Format, body, want []byte, most int) {
			t.Helper()
			cut := func(left int) int { return min(left, 1+r.IntN(most)) }
			if reply, err := deliverAs(hop, f, body, cut); err != nil || !reply.Positive() {
				t.Fatalf("%s, %d bytes: %v, %v", name, len(body), reply, err)
			}
			got := sink.Messages()
			if m := got[len(got)-1]; !bytes.Equal(m.Body, want) {
				t.Fatalf("%s: %d bytes arrived with %d, different", name, len(want), m.Size)
			}
		}
		for _, size := range sizes {
			for _, most := range []int{7, 100_000} {
				if most == 7 && size > 5000 {
					continue
				}
				body := randomBody(r, size)
				body = body[:min(size, len(body))]
				complete := body
				if size > 0 && !bytes.HasSuffix(body, []byte("\r\n")) {
					complete = append(bytes.Clone(body), "\r\n"...)
				}
				check(Stuffed, stuff(complete), complete, most)
				if name == "data" {
					check(Raw, body, complete, most)
					reply, err := deliverAs(box, Raw, body, func(left int) int { return min(left, 1+r.IntN(most)) })
					if err != nil || !bytes.Equal(takeFile(t, dir, reply), append([]byte("Return-Path: <a@example.com>\r\n"), complete...)) {
						t.Fatalf("maildir, %d bytes: %v, %v", size, reply, err)
					}
					continue
				}
				check(Raw, body, body, most)
				for i := range body {
					body[i] = "\r\n\x00.\xffB"[r.IntN(6)]
				}
				check(Binary, body, body, most)
			}
		}
		if v := sink.Violations(); v != nil {
			t.Error(v)
		}
		if n := sink.Conns(); n != 1 {
			t.Errorf("%s: %d connections", name, n)
		}
	}
}

// TestChunkSizes: the chunks are full whatever the pieces are, and what fits in
// one is one.
func TestChunkSizes(t *testing.T) {
	sink := smtptest.NewSink(t, smtptest.Config{Extensions: ahead, DropBodies: true})
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Reuse: true})
	for size, want := range map[int][]int64{
		0:                 {0},
		1:                 {1},
		chunkSize:         {chunkSize},
		chunkSize + 1:     {chunkSize, 1},
		3*chunkSize - 100: {chunkSize, chunkSize, chunkSize - 100},
	} {
		if _, err := deliverAs(hop, Raw, bytes.Repeat([]byte("x"), size), func(left int) int { return min(left, 30_001) }); err != nil {
			t.Fatal(err)
		}
		got := sink.Messages()
		if m := got[len(got)-1]; !slices.Equal(m.Chunks, want) {
			t.Errorf("%d bytes came as %v, not %v", size, m.Chunks, want)
		}
	}
}

// TestChunkOneWrite: the command and its bytes come in one packet, and nothing
// else is said: no DATA.
func TestChunkOneWrite(t *testing.T) {
	sink := smtptest.NewSink(t, smtptest.Config{Extensions: ahead})
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr()})
	if _, err := deliverAs(hop, Raw, []byte("x: y\r\n"), whole); err != nil {
		t.Fatal(err)
	}
	var verbs []string
	for _, c := range sink.Commands() {
		if c.Verb() != "QUIT" { // which comes in the background
			verbs = append(verbs, fmt.Sprint(c.Verb(), c.Flight))
		}
	}
	if got := fmt.Sprint(verbs); got != "[EHLO1 MAIL2 RCPT2 BDAT3]" {
		t.Error(got)
	}
}

// silentChunk begins a message at a sink that never answers BDAT, and writes
// three bytes of it. The channel is closed when the sink is asked.
func silentChunk(t *testing.T, extensions []string) (*smtptest.Sink, Transaction, Message, <-chan struct{}) {
	t.Helper()
	asked := make(chan struct{})
	sink := smtptest.NewSink(t, smtptest.Config{Extensions: extensions, Answer: func(command smtptest.Command) string {
		if command.Verb() != "BDAT" {
			return ""
		}
		close(asked)
		return smtptest.Silence
	}})
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Reuse: true})
	tx, m, err := beginAs(hop, Raw)
	if err != nil {
		t.Fatal(err)
	}
	m.Write([]byte("x\r\n"))
	return sink, tx, m, asked
}

// TestInterruptChunk interrupts the wait for a chunk's reply.
func TestInterruptChunk(t *testing.T) {
	for name, c := range interruptions {
		t.Run(name, func(t *testing.T) {
			checkGoroutines(t)
			sink, tx, m, asked := silentChunk(t, chunking)
			ctx, cancel := context.WithCancelCause(context.Background())
			// Flush takes no context: its caller aborts when one ends.
			defer context.AfterFunc(ctx, tx.Abort)()
			go func() {
				<-asked
				c.interrupt(cancel, tx)
			}()
			if err := m.Flush(); !errors.Is(err, ErrAborted) {
				t.Errorf("%v", err)
			}
			sink.WaitConns(0)
			if len(sink.Messages()) != 0 || len(sink.Undelivered()) != 1 {
				t.Error("the message ended")
			}
		})
	}
}

// TestInterruptCommitOfChunks interrupts Commit while the reply to a chunk before
// the last is missing.
func TestInterruptCommitOfChunks(t *testing.T) {
	for name, c := range interruptions {
		t.Run(name, func(t *testing.T) {
			checkGoroutines(t)
			sink, tx, m, asked := silentChunk(t, ahead)
			if err := m.Flush(); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			go func() {
				<-asked
				c.interrupt(cancel, tx)
			}()
			if reply, err := m.Commit(ctx); !errors.Is(err, c.want) || errors.Is(err, ErrReplyLost) {
				t.Errorf("%v, %v", reply, err)
			}
			sink.WaitConns(0)
			if len(sink.Messages()) != 0 || len(sink.Undelivered()) != 1 {
				t.Error("the message ended")
			}
		})
	}
}

// TestNothingInterruptsTheLastChunk: once it is sent its reply is waited for.
func TestNothingInterruptsTheLastChunk(t *testing.T) {
	for name, c := range interruptions {
		t.Run(name, func(t *testing.T) {
			checkGoroutines(t)
			ended, answer := make(chan struct{}), make(chan struct{})
			sink := smtptest.NewSink(t, smtptest.Config{Extensions: chunking, Answer: func(c smtptest.Command) string {
				if c.Line == "." {
					close(ended)
					<-answer
				}
				return ""
			}})
			hop := newSMTP(t, SMTPConfig{Addr: sink.Addr()})
			tx, m, err := beginAs(hop, Raw)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			go func() {
				<-ended
				c.interrupt(cancel, tx)
				close(answer)
			}()
			if reply, err := m.Commit(ctx); err != nil || reply.Code != 250 {
				t.Errorf("%v, %v", reply, err)
			}
			tx.Abort()
			if n := len(sink.Messages()); n != 1 {
				t.Errorf("%d messages", n)
			}
		})
	}
}

// TestLastChunkCutOff fails the write of the last chunk at each of its bytes: the
// outcome is unknown from the first one on.
func TestLastChunkCutOff(t *testing.T) {
	sink := smtptest.NewSink(t, smtptest.Config{Extensions: chunking})
	const body = "abc\r\n"
	for taken := range len("BDAT 5 LAST\r\n" + body) {
		left := -1
		hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, addr)
			return shortConn{c, &left}, err
		}})
		_, m, err := beginAs(hop, Raw)
		if err != nil {
			t.Fatal(err)
		}
		m.Write([]byte(body))
		left = taken
		reply, err := m.Commit(context.Background())
		if err == nil || errors.Is(err, ErrReplyLost) != (taken > 0) {
			t.Errorf("%d bytes taken: %v, %v", taken, reply, err)
		}
	}
	sink.WaitConns(0)
	if len(sink.Messages()) != 0 {
		t.Error("delivered")
	}
}

// TestRefusedBetweenChunks: the next hop refuses a message in its middle and
// closes the connection, also while more chunks are on their way.
func TestRefusedBetweenChunks(t *testing.T) {
	for _, extensions := range [][]string{chunking, ahead} {
		for _, end := range []string{"", "\n" + smtptest.Close} {
			sink := smtptest.NewSink(t, smtptest.Config{Extensions: extensions, DropBodies: true, Answer: func(c smtptest.Command) string {
				if c.Verb() == "BDAT" {
					return "552 5.3.4 too large" + end
				}
				return ""
			}})
			hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Reuse: true})
			_, m, err := beginAs(hop, Raw)
			if err != nil {
				t.Fatal(err)
			}
			for piece := make([]byte, 50_000); err == nil; {
				_, err = m.Write(piece)
			}
			var early *ReplyError
			if !errors.As(err, &early) || early.Reply.String() != "552 5.3.4 too large" {
				t.Errorf("%v", err)
			}
			if _, again := m.Commit(context.Background()); again != err {
				t.Errorf("commit: %v", again)
			}
			sink.WaitConns(0)
			if len(sink.Messages()) != 0 || sink.Violations() != nil {
				t.Error("delivered, or not understood", sink.Violations())
			}
		}
	}
}

// TestMaildirOffers: what it offers, it takes.
func TestMaildirOffers(t *testing.T) {
	dir := t.TempDir()
	box, err := NewMaildir(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if e := box.Extensions(); !e.Has("SMTPUTF8") || !e.Has("8BITMIME") || e.Has("BINARYMIME") {
		t.Errorf("%v", e)
	}
	tx := box.Begin(Envelope{From: "r\u00e9my@example.com"})
	ctx := context.Background()
	if _, err := tx.Rcpt(ctx, "b@example.net", nil); err != nil {
		t.Fatal(err)
	}
	m, _, err := tx.Data(ctx, Raw)
	if err != nil {
		t.Fatal(err)
	}
	m.Write([]byte(".\r"))
	m.Write(nil)
	m.Write([]byte("\n"))
	if err := m.Flush(); err != nil {
		t.Error(err)
	}
	reply, err := m.Commit(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got := takeFile(t, dir, reply); string(got) != "Return-Path: <r\u00e9my@example.com>\r\n.\r\n" {
		t.Errorf("%q", got)
	}
}

// TestBinaryNotOffered sends no binary message to a next hop that does not offer it.
func TestBinaryNotOffered(t *testing.T) {
	box, err := NewMaildir(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	targets := []Target{box}
	for _, extensions := range [][]string{{"CHUNKING"}, {"BINARYMIME"}, {}} {
		sink := smtptest.NewSink(t, smtptest.Config{Extensions: extensions})
		targets = append(targets, newSMTP(t, SMTPConfig{Addr: sink.Addr(), Reuse: true}))
	}
	for _, target := range targets {
		tx, m, err := beginAs(target, Binary)
		if m != nil || !errors.Is(err, ErrNotOffered) {
			t.Errorf("%s: %v", target, err)
		}
		if _, again := tx.Rcpt(context.Background(), "c@example.net", nil); !errors.Is(again, ErrNotOffered) {
			t.Errorf("%s: %v", target, again)
		}
	}
}
