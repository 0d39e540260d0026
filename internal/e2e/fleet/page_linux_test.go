package fleet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// page is docs/fleet.md, on machines that are directories below root. Their addresses belong to
// this machine.
type page struct {
	t     *testing.T
	text  string
	root  string // has a directory for each machine
	desk  string // where its reader types
	env   []string
	here  *strings.Replacer // makes what the page says possible here
	gates map[string]*member
}

// sshShim runs a command of the page on a "machine". Its files in /etc, /var and /tmp are below
// the machine's directory. After "config init" the log becomes JSON, which the test reads.
const sshShim = `#!/bin/sh
set -e
machine=$ROOT/${1#root@}
shift
cd "$machine"
sh -c "$(printf %s "$*" | sed "s,\(/etc/spamgate\|/tmp/\),$machine&,g")"
case $* in *"config init"*)
	sed -i "s,\"/var/lib/,\"$machine/var/lib/," etc/spamgate/config.toml
	printf '\n[log]\nformat = "json"\n' >>etc/spamgate/config.toml ;;
esac
`

// shims are programs that do on directories what the real ones do on machines. Those that need
// root do nothing but look at their arguments.
var shims = map[string]string{
	"ssh":       sshShim,
	"scp":       "#!/bin/sh\nfor to; do :; done\nto=${to#root@}\n[ \"$1\" != -r ] || shift\ncp -r \"$1\" \"$ROOT/${to%%:*}${to#*:}\"\n",
	"apt":       "#!/bin/sh\nfor file; do :; done\ntest -e \"$file\"\n",
	"chown":     "#!/bin/sh\ntest \"$1 $2\" = '-R spamgate:' && test -e \"$3\"\n",
	"systemctl": "#!/bin/sh\ntest \"$1\" = enable && case $* in *spamgate-fleetd.service*spamgate.service*) touch started ;; *) false ;; esac\n",
}

func newPage(t *testing.T) *page {
	text, err := os.ReadFile("../../../docs/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	p := &page{t: t, text: string(text), root: t.TempDir(), desk: t.TempDir(), gates: map[string]*member{}}
	bin := t.TempDir()
	for name, text := range shims {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(harness.Binary(t), filepath.Join(bin, "spamgate")); err != nil {
		t.Fatal(err)
	}
	p.env = append(os.Environ(), "ROOT="+p.root, "PATH="+bin+":"+os.Getenv("PATH"))
	harness.WriteFile(t, filepath.Join(p.desk, "spamgate_0_amd64.deb"), "")
	var addrs []string
	pid := os.Getpid()
	for i := 1; i <= 3; i++ {
		addrs = append(addrs, fmt.Sprintf("192.0.2.%d", i), fmt.Sprintf("127.%d.%d.%d", 96+32*i+pid>>16&31, pid>>8&255, pid&255))
		for _, dir := range []string{"etc/spamgate", "tmp"} {
			if err := os.MkdirAll(filepath.Join(p.root, fmt.Sprintf("mx%d", i), dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.here = strings.NewReplacer(append(addrs, "--for postfix", "--for maildir --listen 127.0.0.1:0")...)
	return p
}

var shellBlock = regexp.MustCompile("(?s)\n```sh\n(.*?)\n```\n")

// commands returns the lines of the first shell block below a heading.
func (p *page) commands(heading string) []string {
	p.t.Helper()
	_, rest, ok := strings.Cut(p.text, "\n## "+heading+"\n")
	m := shellBlock.FindStringSubmatch(rest)
	if !ok || m == nil {
		p.t.Fatalf("the page has no commands below %q", heading)
	}
	return strings.Split(m[1], "\n")
}

// run types a command of the page, and returns what it prints and its exit code.
func (p *page) run(line string) (string, int) {
	p.t.Helper()
	cmd := exec.Command("sh", "-c", p.here.Replace(line))
	cmd.Dir, cmd.Env = p.desk, p.env
	stdout, stderr, code := harness.Run(p.t, cmd)
	return stdout + stderr, code
}

// start starts gates and servers on machines on which the page has started them.
func (p *page) start() {
	started, err := filepath.Glob(filepath.Join(p.root, "*", "started"))
	if err != nil {
		p.t.Fatal(err)
	}
	var all []*member
	for _, file := range started {
		dir := filepath.Dir(file)
		if err := os.Remove(file); err != nil {
			p.t.Fatal(err)
		}
		harness.LaunchFleetd(p.t, filepath.Join(dir, "etc/spamgate"))
		m := &member{harness.Launch(p.t, filepath.Join(dir, "etc/spamgate"), exec.Command(harness.Binary(p.t), "serve")), filepath.Base(dir)}
		all, p.gates[m.name] = append(all, m), m
	}
	for _, m := range all {
		m.Addr = m.WaitListening()
	}
}

// TestPage brings up three gates as docs/fleet.md says, in at most ten commands.
func TestPage(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	lines := p.commands("Three gates in ten commands")
	if len(lines) > 10 {
		t.Errorf("%d commands", len(lines))
	}
	last := len(lines) - 1
	for _, line := range lines[:last] {
		if text, code := p.run(line); code != 0 {
			t.Fatalf("%s: exit code %d\n%s", line, code, text)
		}
		p.start()
	}
	var text string
	harness.WaitFor(t, "the page's last command says that all is well", func() (well bool) {
		var code int
		text, code = p.run(lines[last])
		return code == 0 && strings.Contains(text, "mx3 ") && !strings.Contains(text, "behind by")
	})
	for _, want := range []string{"mx1 is connected to tls://", "mx2 ", "blocked ", "allowed "} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	for _, line := range p.commands("Edit lists") {
		if text, code := p.run(line); code != 0 {
			t.Errorf("%s: exit code %d\n%s", line, code, text)
		}
	}
	for _, g := range p.gates {
		g.refuses(t, "spammer@example.com")
	}
}
