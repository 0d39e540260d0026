package look

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"spamgate/blocklist/listfile"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/config"
	"spamgate/internal/listfiles"
	"spamgate/internal/publish"
	"spamgate/internal/term"
	"spamgate/internal/text"
	"spamgate/internal/words"
)

type listsPublishOptions struct {
	session.Flags
	to, key, newKey      string
	format, file, expire string
}

func newListsPublishCommand() *cobra.Command {
	var o listsPublishOptions
	cmd := &cobra.Command{
		Use:   "publish [LIST] --to DIR --key FILE | --new-key FILE",
		Short: "Sign a list and write it for others to fetch",
		Long: `Sign a list and write it to a directory that a web server serves, for gates that
have its url and public_key, and for other programs. It writes

  LIST.txt                 the list, without private notes (##)
  LIST.txt.minisig         its minisign signature
  LIST.txt.patches/        the changes since earlier versions (format plain)

Gates refuse an older version, and one whose signature has expired; they go on
with their copy and report it. So run this every day, even if nothing has
changed. It signs a list again when half of --expires is over. After an error
the version before remains.

--new-key makes a secret key, prints the lines for the configuration of those
who fetch, and writes no list. Keep the key where nobody else can read it.
minisign (-G -W) makes such keys, too.

A gate can serve its lists itself, and then tells others of a change at once:
see [publish] in the configuration. It has the default of --key.

What is written is what the gate serves, as by lists export, whose formats
--format takes.

Exit codes: 0 published, or unchanged; 2 an error.`,
		Example: `  spamgate lists publish --new-key publish.key
  spamgate lists publish blocked --to /srv/www/lists --key publish.key
  spamgate lists publish blocked --to /srv/dns -f rpz --file blocked.zone`,
		Args: cobra.MaximumNArgs(1),
	}
	o.AddJSON(cmd)
	o.AddDryRun(cmd)
	cmd.Flags().StringVarP(&o.to, "to", "t", "", "write to `DIR`, which the web server serves")
	cmd.Flags().StringVarP(&o.key, "key", "k", "", "the `FILE` with the secret key (default: [publish] key)")
	cmd.Flags().StringVar(&o.newKey, "new-key", "", "make a secret key, and write it to this new `FILE`")
	cmd.Flags().StringVarP(&o.format, "format", "f", "", "the format (default: plain): `F` is\n"+writableFormats())
	cmd.Flags().StringVar(&o.file, "file", "", "the `FILE` to write in the directory (default: the\nlist's name with .txt; required with --format)")
	cmd.Flags().StringVarP(&o.expire, "expires", "e", text.Duration(publish.DefaultExpires), "`TIME` for which a signature is good, such as 36h or 30d;\n0 means for ever")
	cmd.MarkFlagsMutuallyExclusive("new-key", "to")
	cmd.MarkFlagsMutuallyExclusive("new-key", "key")
	o.RunsIf(cmd, func([]string) bool { return o.newKey == "" }, func(s *session.Session, args []string) error {
		if o.newKey != "" {
			return o.makeKey(s, args)
		}
		o.format = cmp.Or(o.format, string(listfile.Plain))
		return o.publish(s, args)
	})
	return cmd
}

// newKeyReport is the output of publish --new-key.
type newKeyReport struct {
	Key       string `json:"key"`        // file
	PublicKey string `json:"public_key"` // for those who fetch
}

func (o *listsPublishOptions) makeKey(s *session.Session, args []string) error {
	if len(args) > 0 {
		return errors.New("--new-key makes a key and publishes no list: leave the list out")
	}
	if o.DryRun {
		return errors.New("--new-key with --dry-run: there is nothing to show")
	}
	key, err := publish.NewKey(o.newKey)
	if err != nil {
		return err
	}
	report := newKeyReport{o.newKey, key.Public().String()}
	return s.Print(report, func(w io.Writer) {
		fmt.Fprintf(w, "%s: a new secret key\nthose who fetch your lists write, below the url of each:\npublic_key = %q\n", term.ShortPath(report.Key), report.PublicKey)
	})
}

// publishReport is the output of publish.
type publishReport struct {
	List      string     `json:"list"`
	File      string     `json:"file"`
	DryRun    bool       `json:"dry_run"`
	What      string     `json:"what"` // published, signed again or unchanged
	Entries   int        `json:"entries"`
	LeftOut   int        `json:"left_out"` // what the format cannot express
	Bytes     int64      `json:"bytes"`
	Patch     int64      `json:"patch"` // size of the changes from the version before; 0: there are none
	SHA256    string     `json:"sha256"`
	Sequence  int64      `json:"sequence"`
	Signed    time.Time  `json:"signed"`
	Expires   *time.Time `json:"expires,omitempty"`
	PublicKey string     `json:"public_key"`
}

func (o *listsPublishOptions) publish(s *session.Session, args []string) error {
	list, to, err := o.target(s.Config, args)
	if err != nil {
		return err
	}
	format := listfile.Format(o.format)
	source, err := openServed(s, list)
	if err != nil {
		return err
	}
	fromFile := format == listfile.Plain && listfiles.IsServedFile(list, source.stats)
	if !fromFile {
		if err := source.Sort(); err != nil {
			return err
		}
	}
	source.WithoutNotes, source.WithoutReasons = true, !list.PublicReason
	e := &exportRun{Session: s, list: list, options: exportOptions(s.Config, list, format, false), source: source}
	path := filepath.Join(to.Dir, to.Name)
	if err := e.followSerial(path); err != nil {
		return err
	}
	report := publishReport{List: list.Name, File: path, DryRun: s.DryRun, What: "to be published", PublicKey: to.Key.Public().String()}
	if s.DryRun {
		err = e.publishTo(io.Discard, fromFile)
	} else {
		err = report.publish(s, to, e, fromFile)
	}
	if err != nil {
		return err
	}
	report.Entries, report.LeftOut = e.written, e.left
	e.sayRest()
	return s.Print(report, report.print)
}

// target returns the list, and where and how it is to be published.
func (o *listsPublishOptions) target(c *config.Config, args []string) (list config.List, to publish.List, err error) {
	name := ""
	if len(args) == 1 {
		name = args[0]
	}
	if list, err = listToExport(c, name); err != nil {
		return list, to, err
	}
	if err := canExport(list, listfile.Format(o.format)); err != nil {
		return list, to, err
	}
	switch {
	case o.file != "":
		to.Name = o.file
	case o.format == string(listfile.Plain):
		to.Name = list.Name + ".txt"
	default:
		return list, to, fmt.Errorf("--format %s: name the file to write with --file, such as %s.%s", o.format, list.Name, o.format)
	}
	to.Patches = o.format == string(listfile.Plain)
	if err := publish.CheckName(to.Name); err != nil {
		return list, to, fmt.Errorf("--file: %w", err)
	}
	var ok bool
	if to.Expires, ok = words.ParseDuration(o.expire); !ok || to.Expires < 0 || to.Expires > 0 && to.Expires < time.Hour {
		return list, to, fmt.Errorf("--expires %s: write a duration of an hour or more, such as 36h or 30d, or 0 for signatures that are good for ever", o.expire)
	}
	if o.to == "" {
		return list, to, errors.New("no directory: name with --to the one that your web server serves")
	}
	to.Dir = o.to
	if info, err := os.Stat(o.to); err != nil || !info.IsDir() {
		return list, to, errors.Join(fmt.Errorf("--to %s: not a directory: make it first, readable for the web server", o.to), err)
	}
	if l := listWithFile(c, filepath.Join(to.Dir, to.Name)); l != nil {
		return list, to, fmt.Errorf("%s: that is a file of list %s, which would be lost: name another with --file", filepath.Join(to.Dir, to.Name), l.Name)
	}
	if o.key == "" {
		o.key = c.Publish.Key
	}
	if o.key == "" {
		return list, to, errors.New("no key: name its file with --key; spamgate lists publish --new-key FILE makes one")
	}
	to.Key, err = publish.ReadKey(o.key)
	return list, to, err
}

// publishTo writes what is published, from the list's file or from its index.
func (e *exportRun) publishTo(w io.Writer, fromFile bool) (err error) {
	if e.options.Format == listfile.Plain {
		if _, err := io.WriteString(w, publish.Start(e.list.Name)); err != nil {
			return err
		}
	}
	if fromFile {
		e.written, err = listfiles.CopyServed(w, e.list, e.source.stats)
	} else {
		_, err = e.write(w)
	}
	return err
}

// publish publishes the list.
func (r *publishReport) publish(ctx context.Context, to publish.List, e *exportRun, fromFile bool) error {
	result, err := to.Publish(time.Now(), func(w io.Writer) error {
		return errors.Join(e.publishTo(w, fromFile), ctx.Err())
	})
	if err != nil {
		return fmt.Errorf("list %s is not published: %w", r.List, err)
	}
	r.What, r.Bytes, r.Patch, r.SHA256 = result.What, result.Bytes, result.Patch, result.SHA256
	r.Sequence, r.Signed = result.Sequence, result.Signed
	if !result.Expires.IsZero() {
		r.Expires = &result.Expires
	}
	return nil
}

func (r *publishReport) print(w io.Writer) {
	fmt.Fprintf(w, "%s: %s: %s in %s\n", r.List, r.What, text.Count(r.Entries, "entry", "entries"), term.ShortPath(r.File))
	if r.LeftOut > 0 {
		fmt.Fprintf(w, "%s left out, which the format cannot express\n", text.Count(r.LeftOut, "entry", "entries"))
	}
	if r.DryRun {
		return
	}
	expires := "never expires"
	if r.Expires != nil {
		expires = "expires " + r.Expires.Local().Format("2006-01-02 15:04")
	}
	fmt.Fprintf(w, "%s, sequence %d, %s\n", term.ByteSize(r.Bytes), r.Sequence, expires)
	if r.Patch > 0 {
		fmt.Fprintf(w, "changes since the version before: %s\n", term.ByteSize(r.Patch))
	}
	fmt.Fprintf(w, "public_key = %q\n", r.PublicKey)
}
