package setup

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/blocklist/judge"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
	"spamgate/internal/config"
	"spamgate/smtpfilter"
)

// examplesPage explains which entry counts, with examples.
const examplesPage = "../../lists/README.md"

// TestPrecedenceExamples checks the examples of lists/README.md: real lists, configured as the
// page says, judge each message for its recipients.
func TestPrecedenceExamples(t *testing.T) {
	page, err := os.ReadFile(examplesPage)
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## Which entry counts\n")
	section, _, _ = strings.Cut(section, "\n## ")
	_, toml, _ := strings.Cut(section, "```toml\n")
	toml, _, found := strings.Cut(toml, "```")
	if !found {
		t.Fatal("the page has no configuration")
	}
	n := 0
	for _, part := range strings.Split(section, "\n**")[1:] {
		title, body, _ := strings.Cut(part, "**")
		_, example, _ := strings.Cut(body, "```text\n")
		example, _, found := strings.Cut(example, "```")
		if n++; !found || !strings.HasPrefix(title, fmt.Sprintf("%d. ", n)) {
			t.Errorf("%q is not example %d", title, n)
			continue
		}
		t.Run(title, func(t *testing.T) { checkExample(t, toml, example) })
	}
	if n != 10 {
		t.Errorf("%d examples, want 10", n)
	}
}

// checkExample writes the lists of an example, and judges its messages.
func checkExample(t *testing.T, toml, example string) {
	entries, messages, _ := strings.Cut(example, "\n\n")
	messages = strings.ReplaceAll(messages, "\n  ", " ") // a message on two lines
	dir := t.TempDir()
	files := map[string]string{}
	for line := range strings.Lines(toml) {
		if _, name, ok := strings.Cut(line, "name = "); ok {
			name, _, _ = strings.Cut(strings.TrimPrefix(name, `"`), `"`)
			toml = strings.Replace(toml, line, line+fmt.Sprintf("path = %q\n", name+".txt"), 1)
			files[name] = "# no entries\n"
		}
	}
	for line := range strings.Lines(entries + "\n") {
		name, entry, _ := strings.Cut(line, ": ")
		if files[name] == "" {
			t.Fatalf("%q: no list %q", line, name)
		}
		files[name] += entry
	}
	for name, text := range files {
		writeFile(t, filepath.Join(dir, name+".txt"), text)
	}
	writeFile(t, filepath.Join(dir, "config.toml"), "[state]\ndir = \"state\"\n"+toml)
	c, err := config.Load(filepath.Join(dir, "config.toml"))
	if err != nil {
		t.Fatal(err)
	}
	lists, err := BlocklistConfig(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), lists)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	judged, err := FindJudged(c, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := judged.Policy.Validate(); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(messages) {
		m, want := parseExample(t, line)
		if got := m.judge(t, s, &judged.Policy); got != want {
			t.Errorf("%s: %s", strings.TrimSpace(line), got)
		}
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// exampleMessage is a message of an example: "a@b to c@d, e@f From g@h proven by spf".
type exampleMessage struct {
	from   string
	to     []string
	header string
	proven verdict.Proofs
}

func parseExample(t *testing.T, line string) (m exampleMessage, want string) {
	t.Helper()
	text, want, ok := strings.Cut(strings.TrimSpace(line), " = ")
	words := strings.Fields(text)
	if !ok || len(words) < 3 || words[1] != "to" {
		t.Fatalf("%q is not a message", line)
	}
	m.from = words[0]
	for words = words[2:]; len(words) > 0; words = words[1:] {
		switch words[0] {
		case "From":
			m.header, words = words[1], words[1:]
		case "proven":
			if err := m.proven.UnmarshalText([]byte(words[2])); err != nil {
				t.Fatal(err)
			}
			words = words[2:]
		default:
			m.to = append(m.to, strings.TrimSuffix(words[0], ","))
		}
	}
	return m, want
}

// judge returns what becomes of the message, as at an SMTP server: first for each recipient,
// then at the end of the header, then, if a signature may change that, at its end.
func (m exampleMessage) judge(t *testing.T, s *store.Store, p *smtpfilter.Policy) string {
	checker := judge.Checker{Store: s, Unwrap: sender.SRS | sender.BATV, Prover: func() judge.Prover { return m }}
	j := smtpfilter.Judgement{Policy: p, Message: verdict.Message{ReversePath: m.from}}
	j.Begin(t.Context(), checker, false)
	var refused []string
	var why verdict.Finding
	for _, to := range m.to {
		rcpt := verdict.ParseRecipient(to)
		class := j.Recipient(rcpt)
		if f := class.AtRCPT(); f.Verdict.Action >= verdict.Defer {
			refused, why = append(refused, to), *f
			continue
		}
		j.Take(rcpt, class)
	}
	if len(refused) == len(m.to) {
		return said(why, false)
	}
	var found smtpfilter.HeaderFindings
	j.Header([]byte("From: "+m.header+"\r\n"), func() []string { return nil }, &found)
	d := j.Decide()
	if d.Pending {
		j.Finish(nil)
		d = j.Decide()
	}
	result := said(*d.Finding, d.Mixed)
	if refused != nil {
		result += "; " + strings.Join(refused, ", ") + " refused"
	}
	return result
}

func said(f verdict.Finding, mixed bool) string {
	text := f.Verdict.Action.String()
	if mixed {
		text += " for all"
	}
	if f.Verdict.Action != verdict.Accept {
		text += ", list " + f.Verdict.Match.List
	}
	return text
}

// Prove implements [judge.Prover] by what the example says. A signature is known to be valid at
// the end of the message.
func (m exampleMessage) Prove(_ context.Context, msg *verdict.Message, stage verdict.Stage, _ sender.Address, by verdict.Proofs) verdict.Proof {
	p := verdict.Proof{By: by}
	switch {
	case m.proven&by&verdict.SPF != 0 && stage == verdict.Envelope:
		p.State = verdict.Proven
	case by&verdict.DKIM == 0 || msg.HeaderKnown && m.proven&verdict.DKIM == 0:
	case !msg.BodyKnown:
		p.State = verdict.ProofPending
	case m.proven&verdict.DKIM != 0:
		p.State = verdict.Proven
	}
	return p
}
