package fleet

import (
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"spamgate/internal/fleet/fleettest"
)

// overRelay returns two gates that share a list. The second one is connected by a relay.
func overRelay(t *testing.T, change func(*Options)) (a, b *gate, r *relay) {
	t.Helper()
	s := fleettest.Start(t, nil)
	r = newRelay(t, s)
	a, b = newGate(t, "a", s, nil), newGate(t, "b", s, func(o *Options) {
		o.Servers = r.servers()
		if change != nil {
			change(o)
		}
	})
	a.write("blocked", "one@example.net\n")
	a.start()
	b.start()
	equal(t, "blocked", a, b)
	return a, b, r
}

// waitIn waits until a goroutine is in a function, and not in one of others that it calls.
func waitIn(t *testing.T, function string, others ...string) {
	t.Helper()
	buf := make([]byte, 8<<20)
	eventually(t, "a goroutine in "+function, func() bool {
		stacks := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
		return slices.ContainsFunc(stacks, func(s string) bool {
			return strings.Contains(s, function) && !slices.ContainsFunc(others, func(other string) bool { return strings.Contains(s, other) })
		})
	})
}

// TestLostLinkInEdit loses the connection at each of several moments of an edit with a large
// content: the edit is made on the next one.
func TestLostLinkInEdit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		lose losing
	}{
		{"chunk", losing{question: "PUB $O." + bucketContent + ".C."}},
		{"chunk that arrives", losing{question: "PUB $O." + bucketContent + ".C.", delivers: true}},
		{"description", losing{question: "PUB $O." + bucketContent + ".M."}},
		{"description that arrives", losing{question: "PUB $O." + bucketContent + ".M.", delivers: true}},
		{"look for the content", losing{question: "DIRECT.GET.OBJ_" + bucketContent}},
		{"version", losing{question: "PUB $KV." + bucketLists + ".list.blocked"}},
		{"version that arrives", losing{question: "PUB $KV." + bucketLists + ".list.blocked", delivers: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a, b, r := overRelay(t, nil)
			test.lose.mute = true
			lost := r.lose(test.lose)
			go func() {
				<-lost
				r.mend()
			}()
			want := noise(20_000)
			if err := b.edit("blocked", func(string) string { return want }); err != nil {
				t.Fatal(err)
			}
			has(t, "blocked", want, a, b)
		})
	}
}

// TestLostLinkInState loses the connection while a shared value is set.
func TestLostLinkInState(t *testing.T) {
	t.Parallel()
	for _, arrives := range []bool{false, true} {
		_, b, r := overRelay(t, nil)
		lost := r.lose(losing{question: "PUB $KV." + bucketState, delivers: arrives, mute: true})
		go func() {
			<-lost
			r.mend()
		}()
		err := b.SetState(t.Context(), StateKey("pin", "x"), func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage(`"v"`), nil })
		if err != nil {
			t.Errorf("arrives %v: %v", arrives, err)
		}
	}
}

// TestLostLinkInTransfer loses the connection while a content comes: the rest comes on the next one,
// without the patience that a slow server may need.
func TestLostLinkInTransfer(t *testing.T) {
	t.Parallel()
	a, b, r := overRelay(t, func(o *Options) { o.times.edit = 10 * time.Minute })
	lost := r.lose(losing{messages: "$O." + bucketContent + ".C."})
	want := noise(20_000)
	if err := a.edit("blocked", func(string) string { return want }); err != nil {
		t.Fatal(err)
	}
	<-lost
	waitIn(t, "(*objResult).Read(")
	r.mend()
	has(t, "blocked", want, b)
}

// TestCloseInTransfer closes a gate while it waits for a content.
func TestCloseInTransfer(t *testing.T) {
	t.Parallel()
	a, b, r := overRelay(t, func(o *Options) { o.times.edit = 10 * time.Minute })
	lost := r.lose(losing{messages: "$O." + bucketContent + ".C."})
	if err := a.edit("blocked", func(string) string { return noise(20_000) }); err != nil {
		t.Fatal(err)
	}
	<-lost
	waitIn(t, "(*objResult).Read(")
	b.stop()
}

// TestLostLinkInHistory loses the connection while a gate looks for its content among the earlier
// versions: that it sees none does not mean that there is none.
func TestLostLinkInHistory(t *testing.T) {
	t.Parallel()
	_, b, r := overRelay(t, nil)
	l, err := b.list("blocked")
	if err != nil {
		t.Fatal(err)
	}
	buckets, err := b.reach(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sha := b.version("blocked").SHA256
	if next, err := l.lookBack(t.Context(), buckets, sha); next != stepTake || err != nil {
		t.Fatalf("%v, %v", next, err)
	}
	lost := r.lose(losing{messages: "$KV." + bucketLists + ".list.blocked"})
	go func() {
		<-lost
		waitIn(t, "(*kvs).History(", "(*kvs).Watch")
		r.mend()
	}()
	if next, err := l.lookBack(t.Context(), buckets, sha); !errors.Is(err, errLost) {
		t.Errorf("%v, %v", next, err)
	}
}

// TestLostLinkInCatchUp loses the connection while a gate takes the version that its edit has to
// follow.
func TestLostLinkInCatchUp(t *testing.T) {
	t.Parallel()
	a, b, r := overRelay(t, nil)
	lost := r.lose(losing{question: "DIRECT.GET.OBJ_" + bucketContent, mute: true})
	if err := a.edit("blocked", func(string) string { return noise(20_000) }); err != nil {
		t.Fatal(err)
	}
	<-lost
	added := make(chan error)
	go func() { added <- b.add("blocked", "two@example.net") }()
	l, err := b.list("blocked")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the edit waits for the version", func() bool {
		b.Member.mu.Lock()
		defer b.Member.mu.Unlock()
		return l.remote != nil && l.remote.version.Sequence > 1
	})
	r.mend()
	if err := <-added; err != nil {
		t.Error(err)
	}
	equal(t, "blocked", a, b)
	if !strings.HasSuffix(a.read("blocked"), "\ntwo@example.net\n") {
		t.Error("the edit is lost")
	}
}

// TestEditedMeanwhile loses the answer to an edit with the connection, and another gate edits the
// list before there is a new one: the edit is made once.
func TestEditedMeanwhile(t *testing.T) {
	t.Parallel()
	a, b, r := overRelay(t, nil)
	lost := r.lose(losing{question: "PUB $KV." + bucketLists + ".list.blocked", delivers: true, mute: true})
	added := make(chan error)
	go func() { added <- b.add("blocked", "two@example.net") }()
	<-lost
	has(t, "blocked", "one@example.net\ntwo@example.net\n", a)
	a.mustAdd("blocked", "three@example.net")
	r.mend()
	if err := <-added; err != nil {
		t.Error(err)
	}
	has(t, "blocked", "one@example.net\ntwo@example.net\nthree@example.net\n", a, b)
}
