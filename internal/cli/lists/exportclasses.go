package lists

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"spamgate/blocklist/listfile"
	"spamgate/internal/term"
)

// classExport writes a list as what Postfix calls restriction classes: a table of patterns
// for recipients (check_recipient_access) names the class of each, and a class is a table of
// senders (check_sender_access).
type classExport struct {
	*exportRun
	dir      string
	prefix   string // of the names of tables and classes
	entries  []exportedEntry
	groups   map[string][]listfile.Entry // by the recipient's side; their lines are places in entries
	patterns []recipientPattern
	rules    []recipientRule
	tables   []classTable
	left     map[int]bool // places in entries
}

// exportedEntry is an entry of the list with its file.
type exportedEntry struct {
	listfile.Entry
	file string
}

// classTable is a table of senders, and the class that looks into it.
type classTable struct {
	name    string
	content []byte
}

// writeClasses writes the tables into the directory, and what main.cf needs to standard
// output.
func (e *exportRun) writeClasses(dir string) error {
	x := &classExport{exportRun: e, groups: map[string][]listfile.Entry{}, left: map[int]bool{}}
	var err error
	if x.dir, err = classDir(dir); err != nil {
		return err
	}
	x.prefix = "spamgate_" + className(e.list.Name)
	if e.options.Action == "DISCARD" {
		x.milder("DISCARD would discard the message of the other recipients, too")
	}
	if x.rules, err = recipientRules(e.config, e.list, e.options.Action, x.milder); err != nil {
		return err
	}
	if err := x.read(); err != nil {
		return err
	}
	recipients := x.recipients()
	table := x.recipientTable()
	before := x.mainCFBefore()
	lines := x.mainCF(table)
	if err := x.writeFiles(classTable{table, recipients}, classTable{x.prefix + "_main.cf", []byte(lines)}); err != nil {
		return err
	}
	e.left, e.written = len(x.left), len(x.entries)-len(x.left)
	if _, err := io.WriteString(term.Escape(e.cmd.OutOrStdout()), lines); err != nil {
		return err
	}
	x.sayChanged(before, table)
	return nil
}

// classDir makes the directory of --out and returns its absolute path.
func classDir(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("the tables of restriction classes are several files: name their directory with --out DIR, such as /etc/postfix/spamgate")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("--out: %w", err)
	}
	if strings.ContainsAny(dir, " \t,{}$\"") {
		return "", fmt.Errorf("--out %s: main.cf cannot have this path: name one without spaces, commas and $", dir)
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("--out: %w: name a directory in one that exists", err)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", fmt.Errorf("--out %s: not a directory: restriction classes are several files", dir)
	}
	return dir, nil
}

// milder reports what the tables do less than the list.
func (x *classExport) milder(what string) {
	fmt.Fprintf(x.stderr, "list %s: %s: Postfix gets WARN, which logs and lets pass\n", x.list.Name, what)
	if x.options.Action == "DISCARD" {
		x.options.Action = "WARN"
	}
}

// read reads the list's entries into groups.
func (x *classExport) read() error {
	var sides []string
	for e := range x.source.each {
		x.entries = append(x.entries, exportedEntry{e, x.source.File})
		if x.groups[e.For] == nil {
			sides = append(sides, e.For)
		}
		one := e
		one.For, one.Line = "", len(x.entries)
		x.groups[e.For] = append(x.groups[e.For], one)
	}
	if err := x.source.Err; err != nil {
		return err
	}
	if !x.list.PerRecipient {
		x.patterns = []recipientPattern{{regexp: "^", keys: sides}}
		return nil
	}
	var err error
	if x.patterns, err = recipientPatterns(sides); err != nil {
		return fmt.Errorf("list %s cannot be written for restriction classes: %w", x.list.Name, err)
	}
	return nil
}

// recipients returns the table that names the class of each recipient.
func (x *classExport) recipients() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# The recipients of list %s, for check_recipient_access regexp: in Postfix.\n", x.list.Name)
	bodies := map[string]string{}
	for _, rule := range x.rules {
		body := ""
		if !rule.none {
			var ok bool
			if body, ok = bodies[rule.action]; !ok {
				body = x.body(rule.action)
				bodies[rule.action] = body
			}
		}
		rule.print(&b, body)
	}
	return b.Bytes()
}

// body returns the lines for the recipients of one rule.
func (x *classExport) body(action string) string {
	var b strings.Builder
	for _, p := range x.patterns {
		groups := make([][]listfile.Entry, len(p.keys))
		for i, key := range p.keys {
			groups[i] = x.groups[key]
		}
		if len(groups) == 0 {
			continue
		}
		merged := mergeLines(groups, func(e listfile.Entry, what string) {
			x.leaveOut(e.Line, "a table for "+p.name+" cannot have it: "+what)
		})
		fmt.Fprintf(&b, "/%s/\t%s\n", p.regexp, x.class(p.name, merged, action))
	}
	return b.String()
}

// class returns the name of the class for some entries, or DUNNO if there is nothing to look
// up.
func (x *classExport) class(recipient string, entries []listfile.Entry, action string) string {
	byKey := make(map[string]listfile.Entry, len(entries))
	for _, e := range entries {
		byKey[e.Key] = e
	}
	list := listfile.List{Entries: slices.Values(entries), Lookup: func(key string) (listfile.Entry, bool) {
		e, ok := byKey[key]
		return e, ok
	}}
	o := x.options
	o.Action = action
	var content bytes.Buffer
	_, _ = listfile.Write(&content, list, o, func(p listfile.Problem) { x.leaveOut(p.Line, p.What) }) // the format is known
	if i := slices.IndexFunc(x.tables, func(t classTable) bool { return bytes.Equal(t.content, content.Bytes()) }); i >= 0 {
		return x.tables[i].name
	}
	if !bytes.Contains(content.Bytes(), []byte("\t")) {
		return "DUNNO"
	}
	name := x.prefix
	if recipient != "" {
		name += "_" + className(recipient)
	}
	if action != x.options.Action {
		name += "_" + strings.ToLower(action)
	}
	taken := func(name string) bool {
		return name == x.prefix+classesSuffix || name == x.prefix+checkSuffix ||
			slices.ContainsFunc(x.tables, func(t classTable) bool { return t.name == name })
	}
	one := name
	for n := 2; taken(one); n++ {
		one = fmt.Sprintf("%s_%d", name, n)
	}
	x.tables = append(x.tables, classTable{one, content.Bytes()})
	return one
}

// className returns a text as part of the name of a parameter of Postfix.
func className(s string) string {
	name := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(s))
	return strings.Trim(name[:min(len(name), 60)], "_")
}

// leaveOut reports once that entry number n is not expressed.
func (x *classExport) leaveOut(n int, what string) {
	if n < 1 || n > len(x.entries) || x.left[n] {
		return
	}
	x.left[n] = true
	e := x.entries[n-1]
	x.source.File = e.file
	x.leave(listfile.Problem{Line: e.Line, Text: listfile.AsEntry(e.Entry), What: what})
}
