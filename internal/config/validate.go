package config

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// validate checks the values that bind left, and normalises them in place.
func (d *document) validate() {
	d.hostname()
	d.nextHop()
	d.listen() // after the next hop, which decides who may come in
	d.filter()
	d.state()
	d.guard()
	d.admin() // after the listeners, whose addresses it cannot have
	d.headers()
	d.policy()
	d.between("watch.poll_interval", d.cfg.Watch.PollInterval, 100*time.Millisecond, 24*time.Hour)
	d.logOutput()
	d.oneOf("log.format", d.cfg.Log.Format, "text", "json")
	d.oneOf("log.level", d.cfg.Log.Level, "debug", "info", "warn", "error")
	d.oneOf("log.addresses", d.cfg.Log.Addresses, "full", "domain", "hash")
	d.checkLists()
}

// schemeFile begins the log output that is a file.
const schemeFile = "file:"

func (d *document) logOutput() {
	output := d.cfg.Log.Output
	path, ok := strings.CutPrefix(output, schemeFile)
	switch {
	case !ok && strings.Contains(output, "/") && !strings.Contains(output, ":"):
		d.fail("log.output", fmt.Sprintf("%q is not known", output), fmt.Sprintf("write %q, or one of \"stderr\", \"syslog\" and \"journal\"", schemeFile+output))
	case !ok:
		d.oneOf("log.output", output, "stderr", "syslog", "journal", "file:PATH")
	case path == "" || strings.HasSuffix(path, "/"):
		d.fail("log.output", fmt.Sprintf("%q names no file", output), `write "file:" and the path of a file, such as "file:/var/log/spamgate/gate.log"`)
	case strings.ContainsRune(path, 0):
		d.fail("log.output", "has a NUL byte in the path", "remove it")
	}
}

// oneOf checks a value against a fixed choice.
func (d *document) oneOf(path, value string, allowed ...string) bool {
	if slices.Contains(allowed, value) {
		return true
	}
	d.fail(path, fmt.Sprintf("%q is not known", value), "write "+choice(allowed))
	return false
}

// choice is `"a", "b" or "c"`.
func choice(values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = fmt.Sprintf("%q", v)
	}
	last := len(quoted) - 1
	if last == 0 {
		return quoted[0]
	}
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}

// between checks a duration.
func (d *document) between(path string, v, low, high time.Duration) {
	if v < low || v > high {
		d.fail(path, fmt.Sprintf("%v is out of range", v), fmt.Sprintf("write %q to %q", short(low), short(high)))
	}
}

// short is a duration without the zeros that Go puts at its end: "1h".
func short(v time.Duration) string {
	s := v.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// within checks a number.
func (d *document) within(path string, v, low, high int64) {
	if v < low || v > high {
		d.fail(path, fmt.Sprintf("%d is out of range", v), fmt.Sprintf("write %d to %d", low, high))
	}
}

func (d *document) hostname() {
	if d.cfg.Hostname == "" {
		return
	}
	name, err := hostname(d.cfg.Hostname)
	if err != nil {
		d.fail("hostname", fmt.Sprintf("%q %v", d.cfg.Hostname, err),
			`write a full name such as "gate.example", an address literal such as "[192.0.2.1]", or "" for the machine's own name`)
		return
	}
	d.cfg.Hostname = name
}

// elementOrKey is the path of the i-th element of a value that may be a single
// string instead of an array.
func (d *document) elementOrKey(path string, i int) string {
	if p := element(path, i); d.at.has(p) {
		return p
	}
	return path
}

func (d *document) state() {
	if d.cfg.State.Dir == "" {
		d.fail("state.dir", "is empty", `write a directory, such as "state"`)
	}
	d.within("state.history", d.cfg.State.History, 0, 100)
}

// The range of [headers] max_bytes: a line alone may have 998 bytes (RFC 5322,
// section 2.1.1), and no honest header comes near 16 MiB.
const (
	minHeaderBytes = 1000
	maxHeaderBytes = 16 << 20
)

// The range of [headers] max_addresses: a broken field may be read in several ways,
// which all count, and each lookup costs about a microsecond.
const (
	minHeaderAddresses = 100
	maxHeaderAddresses = 10_000
)

func (d *document) headers() {
	seen := map[string]bool{}
	for i, name := range d.cfg.Headers.Check {
		path := element("headers.check", i)
		switch lower := strings.ToLower(name); {
		case !isFieldName(name):
			d.fail(path, fmt.Sprintf("%q is no name of a header field", name),
				`write it as in a message, without the colon: "From"`)
		case seen[lower]:
			d.fail(path, fmt.Sprintf("%q is there twice", name), "remove one; case makes no difference")
		default:
			seen[lower] = true
		}
	}
	d.within("headers.max_bytes", d.cfg.Headers.MaxBytes, minHeaderBytes, maxHeaderBytes)
	d.within("headers.max_addresses", d.cfg.Headers.MaxAddresses, minHeaderAddresses, maxHeaderAddresses)
}

// isFieldName reports whether s is field-name of RFC 5322, section 3.6.8.
func isFieldName(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 33 || c > 126 || c == ':' {
			return false
		}
	}
	return s != ""
}
