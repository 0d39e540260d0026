package alike

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// ownKeys are the attributes that a line has because of its door or its moment. All others
// are equal.
var ownKeys = []string{
	"time", "id", "client", "duration", // of this connection
	"door", "listener", "queue_id", // not of the proxy
	"tls", "next_hop", "next_hop_reply", "size", // not of the others
}

// logs compares the lines about each message in the log of a gate that has ended.
func (e *everyDoor) logs(t *testing.T, text map[string]*heard) {
	byHelo := map[string][]harness.Record{}
	for line := range strings.Lines(e.Log.String()) {
		if r := harness.ParseRecord(line); r.Text("id") != "" {
			byHelo[r.Text("helo")] = append(byHelo[r.Text("helo")], r)
		}
	}
	compared := 0
	for _, m := range e.mail {
		proxy := byHelo[m.helo]
		milter := byHelo["v."+m.helo]
		if !e.late[m.helo] {
			compareLogs(t, m, "milter", milter, proxy)
			compared += len(milter)
		}
		policy := byHelo["p."+m.helo]
		if h := text[m.helo]; !slices.ContainsFunc(h.rcpts, func(r string) bool { return r != "" }) {
			proxy = nil // it refuses at the end of the message, which the policy service does not see
		}
		compareLogs(t, m, "policy_service", refusals(policy), refusals(proxy))
	}
	if compared < minCorpus {
		t.Errorf("the milter's log has %d lines: they were not read", compared)
	}
}

// refusals returns the lines about the reverse-path that the policy service must have. It
// logs a refusal once for recipients for whom the same counts, and not at each recipient: the
// first line is that of the first of them.
func refusals(all []harness.Record) []harness.Record {
	var found []harness.Record
	for _, r := range all {
		if r.Text("msg") == "refused" && r.Text("identity") == "envelope" && len(found) == 0 {
			found = append(found, r)
		}
	}
	return found
}

func compareLogs(t *testing.T, m mail, door string, got, want []harness.Record) {
	t.Helper()
	for _, r := range got {
		if r.Text("door") != door {
			t.Errorf("%s: the log says door=%v, want %s", m.what, r["door"], door)
		}
	}
	if a, b := comparable(got), comparable(want); !reflect.DeepEqual(a, b) {
		t.Errorf("%s: from <%s> to %q\n%s\nthe log of %s:\n%v\nof the proxy:\n%v", m.what, m.from, m.rcpts, m.header, door, text(a), text(b))
	}
}

// comparable returns lines without what may differ.
func comparable(all []harness.Record) []harness.Record {
	var some []harness.Record
	for _, r := range all {
		r = maps.Clone(r)
		for _, key := range append(ownKeys, "helo") {
			delete(r, key)
		}
		if reply := r.Text("reply"); reply != "" {
			r["reply"] = idInReply.ReplaceAllString(reply, "id ID")
		}
		some = append(some, r)
	}
	return some
}

// text returns lines as a failure shows them.
func text(all []harness.Record) string {
	var b strings.Builder
	for _, r := range all {
		for _, key := range slices.Sorted(maps.Keys(r)) {
			fmt.Fprintf(&b, " %s=%v", key, r[key])
		}
		b.WriteString("\n")
	}
	return b.String()
}
