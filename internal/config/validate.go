package config

import (
	"fmt"
	"slices"
	"strings"
)

// validate checks what the tags of the fields cannot say, and normalises values
// in place.
func (d *document) validate() {
	d.hostname()
	d.nextHop()
	d.listen() // after the next hop, on which it depends
	d.checkDoors()
	d.filter()
	if d.cfg.State.Dir == "" {
		d.fail("state.dir", "is empty", `write a directory, such as "state"`)
	}
	d.guard()
	d.admin() // after the listeners, whose addresses are taken
	d.console()
	d.headers()
	d.policy()
	d.logOutput()
	d.resolver()
	d.fleet()
	d.checkLists()
	d.publish()
	d.recipientPolicies()
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
		d.fail("log.output", fmt.Sprintf("%q does not name a file", output), `write "file:" and the path of a file, such as "file:/var/log/spamgate/gate.log"`)
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

// choices checks an array whose elements have a fixed choice.
func (d *document) choices(path string, values, allowed []string) {
	for i, v := range values {
		if key := element(path, i); d.oneOf(key, v, allowed...) && slices.Contains(values[:i], v) {
			d.twice(key, v)
		}
	}
}

// choice returns `"a", "b" or "c"`.
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

// twice notes a value that an array has more than once.
func (d *document) twice(path, value string) {
	d.fail(path, fmt.Sprintf("%q appears twice", value), "remove one")
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

// elementOrKey returns the path of the i-th element of an array, or that of its
// key if a single string takes the place of the array.
func (d *document) elementOrKey(path string, i int) string {
	if p := element(path, i); d.pos.has(p) {
		return p
	}
	return path
}

func (d *document) headers() {
	seen := map[string]bool{}
	for i, name := range d.cfg.Headers.Check {
		path := element("headers.check", i)
		switch lower := strings.ToLower(name); {
		case !isFieldName(name):
			d.fail(path, fmt.Sprintf("%q is not the name of a header field", name),
				`write it as in a message, without the colon: "From"`)
		case seen[lower]:
			d.fail(path, fmt.Sprintf("%q appears twice", name), "remove one; case makes no difference")
		default:
			seen[lower] = true
		}
	}
}

// isFieldName reports whether s is a field-name (RFC 5322, section 3.6.8).
func isFieldName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r < 33 || r > 126 || r == ':' })
}

// guard checks [guard].
func (d *document) guard() {
	protect := d.cfg.Guard.Protect
	for i, s := range protect {
		path := element("guard.protect", i)
		domain, alone := strings.CutPrefix(s, "@")
		domain, err := domainName(domain)
		name := domain
		if alone {
			name = "@" + name
		}
		switch {
		case err != nil:
			d.fail(path, fmt.Sprintf("%q %v", s, err), `write a domain such as "example.com", or "@example.com" for it without its subdomains`)
		case slices.Contains(protect[:i], name):
			d.twice(path, s)
		case alone:
			if slices.Contains(protect[:i], domain) {
				d.fail(path, fmt.Sprintf("%q contradicts %q, which includes the subdomains", s, domain), "remove one of them")
			}
		case slices.Contains(protect[:i], "@"+name):
			d.fail(path, fmt.Sprintf("%q contradicts %q, which leaves out the subdomains", s, "@"+name), "remove one of them")
		}
		protect[i] = name
	}
}
