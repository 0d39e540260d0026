package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"spamgate/internal/text"
)

// maxFileSize is far beyond any real configuration. It bounds the damage of a wrong
// path, such as that of a mailbox.
const maxFileSize = 1 << 20

// Load reads and checks the configuration at path. Relative paths in it become
// absolute, relative to the directory of the file.
//
// The error joins all faults, one [Error] each. If the file does not exist it wraps
// fs.ErrNotExist.
func Load(path string) (*Config, error) { return load(path, false) }

// LoadFleetServer is [Load] for spamgate-fleetd, which only runs the server of a fleet: lists are not
// required, nor servers in [fleet], and [fleet.server] listen is.
func LoadFleetServer(path string) (*Config, error) { return load(path, true) }

func load(path string, serverOnly bool) (*Config, error) {
	src, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return parseAt(path, src, serverOnly)
}

// Parse is [Load] for the text of a configuration that is to be at path.
func Parse(path string, src []byte) (*Config, error) { return parseAt(path, src, false) }

func parseAt(path string, src []byte, serverOnly bool) (*Config, error) {
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("config %s: finding its directory: %w", path, err)
	}
	cfg, err := parse(path, src, serverOnly)
	if err != nil {
		return nil, err
	}
	cfg.resolve(dir)
	cfg.Source = bytes.TrimPrefix(src, []byte(byteOrderMark))
	return cfg, nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the configuration: %w; name another file with --config, let \"spamgate config init\" write one, "+
			"or write it: a [[list]] with name and path is enough, since all other keys have defaults", err)
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("reading the configuration: %w; it is read by the user with the number %d: give it to a group of that user (chgrp), "+
			"with chmod 640, and let that user enter its directory", err, os.Geteuid())
	}
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	if len(src) > maxFileSize {
		return nil, fmt.Errorf("reading the configuration: %s is larger than %d bytes; is it the right file?", path, maxFileSize)
	}
	return src, nil
}

// byteOrderMark is what some editors write before UTF-8.
const byteOrderMark = "\ufeff"

// parse decodes and checks a document. It does not look at the file system. With serverOnly
// the document is for a fleet's server alone.
func parse(file string, src []byte, serverOnly bool) (*Config, error) {
	src = bytes.TrimPrefix(src, []byte(byteOrderMark))
	var tree map[string]any
	if err := toml.Unmarshal(src, &tree); err != nil {
		return nil, syntaxError(file, src, err)
	}
	cfg := Default()
	cfg.File = file
	d := &document{serverOnly: serverOnly, cfg: &cfg, pos: index(src).pos, failed: map[string]bool{}, names: map[string]takenName{}}
	d.bind(tree)
	d.validate()
	if err := Join(d.faults); err != nil {
		return nil, err
	}
	cfg.Warnings = inOrder(d.warnings)
	if table, _ := tree["admin"].(map[string]any); table["socket"] == nil {
		cfg.Admin.Socket = cfg.State.DefaultSocket()
	}
	return &cfg, nil
}

// document is a configuration that is being read: the values, the position of each,
// and the faults so far.
type document struct {
	cfg    *Config
	pos    positions
	faults []*Error
	failed map[string]bool

	warnings []*Error

	unknownTable bool // the file has a table whose name is unknown
	serverOnly   bool // only the server of a fleet runs

	// The names and addresses of the listeners and doors so far.
	names map[string]takenName
	taken []takenAddr
}

// fail notes a fault at the path of a key. It keeps only the first at a path: a
// value of the wrong type need not be out of range too.
func (d *document) fail(path, what, hint string) {
	if d.failed[path] {
		return
	}
	d.failed[path] = true
	d.faults = append(d.faults, d.fault(path, what, hint))
}

// warn notes at the path of a key that its value is accepted, but may not do what
// its author expects.
func (d *document) warn(path, what, hint string) {
	d.warnings = append(d.warnings, d.fault(path, what, hint))
}

func (d *document) fault(path, what, hint string) *Error {
	line, column := d.pos.find(path)
	return &Error{
		File: d.cfg.File, Line: line, Column: column,
		Key: display(path), What: what, Hint: hint,
	}
}

// failedBelow reports whether a key, or an element of its value, has a fault.
func (d *document) failedBelow(path string) bool {
	for failed := range d.failed {
		if failed == path || strings.HasPrefix(failed, path+"[") {
			return true
		}
	}
	return false
}

// resolve makes the paths of a checked configuration absolute.
func (c *Config) resolve(dir string) {
	abs := func(p string) string {
		switch {
		case p == "":
			return ""
		case filepath.IsAbs(p):
			return filepath.Clean(p)
		default:
			return filepath.Join(dir, p)
		}
	}
	c.keepIn(abs(c.State.Dir))
	c.Admin.Socket = abs(c.Admin.Socket)
	c.NextHop.resolve(abs)
	recipients := [][]string{c.Policy.RecipientDomains, c.Policy.ValidRecipients}
	for _, p := range c.RecipientPolicies {
		recipients = append(recipients, p.Match)
	}
	for _, values := range recipients {
		if path, ok := onlyFile(values); ok {
			values[0] = schemeFile + abs(path)
		}
	}
	if path, ok := strings.CutPrefix(c.Log.Output, schemeFile); ok {
		c.Log.Output = schemeFile + abs(path)
	}
	allAbs := func(files Files) (all Files) {
		for _, f := range files {
			all = append(all, abs(f))
		}
		return all
	}
	c.Listen.TLSCert, c.Listen.TLSKey = allAbs(c.Listen.TLSCert), allAbs(c.Listen.TLSKey)
	for i := range c.Listeners {
		l := &c.Listeners[i]
		l.TLSCert, l.TLSKey = allAbs(l.TLSCert), allAbs(l.TLSKey)
		if l.NextHop != nil {
			l.NextHop.resolve(abs)
		}
	}
	for i := range c.Doors {
		c.Doors[i].resolve(abs)
	}
	c.Console.TLSCert, c.Console.TLSKey = allAbs(c.Console.TLSCert), allAbs(c.Console.TLSKey)
	c.Publish.TLSCert, c.Publish.TLSKey = allAbs(c.Publish.TLSCert), allAbs(c.Publish.TLSKey)
	c.Publish.Key, c.Publish.Tokens = abs(c.Publish.Key), abs(c.Publish.Tokens)
	if path, ok := c.Console.Unix(); ok {
		c.Console.Addr = schemeUnix + abs(path)
	}
	for i := range c.Lists {
		c.Lists[i].TLSCA = abs(c.Lists[i].TLSCA)
		switch p := &c.Lists[i].Path; {
		case *p == "":
		case filepath.IsAbs(*p):
			*p = filepath.Clean(*p)
		default:
			// The name of the directory is not part of the glob.
			*p = filepath.Join(text.EscapeGlob(dir), *p)
		}
	}
	if c.Hostname == "" {
		var err error
		if c.Hostname, err = machineName(); err != nil {
			c.Warnings = inOrder(append(c.Warnings, c.Fault("hostname", fmt.Sprintf("%v, so that the gate's name is %q", err, c.Hostname),
				`write hostname = "gate.example" with the name of this machine in DNS`)))
		}
	}
	c.Fleet.resolve(c, abs)
}

// machineName returns the machine's own name, or localhost and an error if a
// greeting cannot contain that name (RFC 5321, section 4.1.3).
func machineName() (string, error) {
	own, err := os.Hostname()
	if err != nil {
		return "localhost", fmt.Errorf("the machine has no name: %w", err)
	}
	name, err := hostname(own)
	if err != nil {
		return "localhost", fmt.Errorf("the machine's own name %q %w", own, err)
	}
	return name, nil
}
