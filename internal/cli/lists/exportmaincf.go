package lists

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"spamgate/internal/cli"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

// Ends of the names of two parameters of main.cf: the classes of a list, and its restriction.
const (
	classesSuffix = "_classes"
	checkSuffix   = "_check"
)

// recipientTable returns the name of the table of recipients. It changes with the classes: a
// main.cf without a new class goes on with the table before, because Postfix answers 451 to
// everybody if a table names a class that main.cf does not have.
func (x *classExport) recipientTable() string {
	var names []string
	for _, t := range x.tables {
		names = append(names, t.name)
	}
	slices.Sort(names)
	sum := sha256.Sum256([]byte(strings.Join(names, " ")))
	return fmt.Sprintf("%s_recipients.%x", x.prefix, sum[:4])
}

// writeFiles writes the tables of the classes, then the others. It writes none if one of them
// cannot be written to.
func (x *classExport) writeFiles(others ...classTable) error {
	files := append(slices.Clone(x.tables), others...)
	for _, f := range files {
		if _, _, err := cli.CheckTarget("--out", filepath.Join(x.dir, f.name)); err != nil {
			return err
		}
	}
	for i, f := range files {
		path, perm, err := cli.CheckTarget("--out", filepath.Join(x.dir, f.name))
		if err == nil {
			_, err = cli.ReplaceFile(x, path, perm, func(w io.Writer) (int64, error) {
				n, err := w.Write(f.content)
				return int64(n), err
			})
		}
		if err != nil && i > 0 {
			err = fmt.Errorf("%w; %s written before that", err, text.Count(i, "file was", "files were"))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mainCF returns what the configuration of Postfix needs, in the order in which it is done.
func (x *classExport) mainCF(recipients string) string {
	var b strings.Builder
	if len(x.tables) > 0 {
		b.WriteString("# 1. After each export, compile the tables:\n")
		for _, t := range x.tables {
			fmt.Fprintf(&b, "#   postmap %s\n", term.ShellWord(filepath.Join(x.dir, t.name)))
		}
	}
	b.WriteString("# 2. In main.cf, put these lines in place of those of the last export:\n")
	fmt.Fprintf(&b, "%s =", x.prefix+classesSuffix)
	for i, t := range x.tables {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n    " + t.name)
	}
	b.WriteByte('\n')
	for _, t := range x.tables {
		fmt.Fprintf(&b, "%s =\n    check_sender_access $default_database_type:%s\n", t.name, filepath.Join(x.dir, t.name))
	}
	fmt.Fprintf(&b, "%s =\n    check_recipient_access regexp:%s\n", x.prefix+checkSuffix, filepath.Join(x.dir, recipients))
	b.WriteString(`# 3. Once, add these values to the same two parameters. If main.cf has them already,
#    for another list too, do not append them: a second line replaces the first.
`)
	fmt.Fprintf(&b, "smtpd_restriction_classes = $%s\n", x.prefix+classesSuffix)
	fmt.Fprintf(&b, "smtpd_sender_restrictions = $%s\n", x.prefix+checkSuffix)
	b.WriteString("#    smtpd_delay_reject = yes (the default) and recipient_delimiter = + are needed.\n")
	if x.options.DotSubdomains {
		b.WriteString("#    Take smtpd_access_maps out of parent_domain_matches_subdomains.\n")
	}
	b.WriteString("# 4. After each export:\n#   postfix reload\n")
	return b.String()
}

// mainCFBefore returns the lines for main.cf of the last export into the directory.
func (x *classExport) mainCFBefore() string {
	lines, err := os.ReadFile(filepath.Join(x.dir, x.prefix+"_main.cf"))
	if err != nil {
		return "" // the first export
	}
	return string(lines)
}

// sayChanged says that main.cf needs other lines than those of the last export.
func (x *classExport) sayChanged(before, recipients string) {
	if before == "" || strings.Contains(before, "/"+recipients+"\n") {
		return
	}
	had := classesOf(before)
	var added []string
	for _, t := range x.tables {
		if i := slices.Index(had, t.name); i >= 0 {
			had = slices.Delete(had, i, i+1)
		} else {
			added = append(added, t.name)
		}
	}
	fmt.Fprintf(x.stderr, "main.cf needs the new lines, which are in %s, too\n", filepath.Join(x.dir, x.prefix+"_main.cf"))
	for _, c := range []struct {
		what  string
		names []string
	}{{"new classes", added}, {"classes that are gone", had}} {
		if len(c.names) > 0 {
			fmt.Fprintf(x.stderr, "  %s: %s\n", c.what, firstNames(c.names))
		}
	}
	fmt.Fprintln(x.stderr, "  until then Postfix uses the table of recipients that main.cf names")
}

// classesOf returns the names of the classes in lines for main.cf.
func classesOf(lines string) (names []string) {
	name := ""
	for line := range strings.Lines(lines) {
		if strings.HasPrefix(line, "    check_sender_access ") {
			names = append(names, name)
		}
		name = strings.TrimSuffix(line, " =\n")
	}
	return names
}

// firstNames returns the first five names, and the number of the others.
func firstNames(names []string) string {
	if more := len(names) - 5; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:5], ", "), more)
	}
	return strings.Join(names, ", ")
}
