// Command inventory writes what a package has to say about the Go modules in the
// programs: a software bill of materials (CycloneDX) and Debian's copyright file, with the
// licence text of each module.
//
//	inventory -binary spamgate -binary spamgate-fleetd -version 0.1.0 -date 1700000000 -sbom FILE -copyright FILE
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// module is a module that is linked into the program.
type module struct {
	Path, Version, Sum string
	licences           []licence
}

func main() {
	var binaries []string
	flag.Func("binary", "a program's `FILE`; the first one names what the package was built with", func(s string) error {
		binaries = append(binaries, s)
		return nil
	})
	version := flag.String("version", "", "the version of the package")
	date := flag.Int64("date", 0, "the time of the build, in `SECONDS` since 1970")
	sbom := flag.String("sbom", "", "write the bill of materials to `FILE`")
	copyright := flag.String("copyright", "", "write Debian's copyright file to `FILE`")
	flag.Parse()
	if err := run(binaries, *version, time.Unix(*date, 0).UTC(), *sbom, *copyright); err != nil {
		fmt.Fprintln(os.Stderr, "inventory:", err)
		os.Exit(2)
	}
}

func run(binaries []string, version string, date time.Time, sbom, copyright string) error {
	var info *buildinfo.BuildInfo
	for _, binary := range binaries {
		i, err := buildinfo.ReadFile(binary)
		if err != nil {
			return err
		}
		if info == nil {
			info = i
			continue
		}
		for _, m := range i.Deps {
			if !slices.ContainsFunc(info.Deps, func(d *debug.Module) bool { return d.Path == m.Path }) {
				info.Deps = append(info.Deps, m)
			}
		}
	}
	if info == nil {
		return errors.New("-binary is missing")
	}
	modules, err := linked(info)
	if err != nil {
		return err
	}
	if sbom != "" {
		if err := writeFile(sbom, func(w io.Writer) error { return writeSBOM(w, info, modules, version, date) }); err != nil {
			return err
		}
	}
	if copyright == "" {
		return nil
	}
	return writeFile(copyright, func(w io.Writer) error { return writeCopyright(w, modules) })
}

func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// linked returns the modules of programs, sorted, and Go's standard library.
func linked(info *buildinfo.BuildInfo) ([]module, error) {
	var modules []module
	var names []string
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		modules = append(modules, module{Path: m.Path, Version: m.Version, Sum: m.Sum})
		names = append(names, m.Path+"@"+m.Version)
	}
	dirs, err := download(names)
	if err != nil {
		return nil, err
	}
	for i, m := range modules {
		if modules[i].licences, err = readLicences(dirs[m.Path+"@"+m.Version]); err != nil {
			return nil, fmt.Errorf("%s: %w", m.Path, err)
		}
	}
	std := module{Path: "std", Version: info.GoVersion}
	if std.licences, err = goLicence(); err != nil {
		return nil, err
	}
	modules = append(modules, std)
	slices.SortFunc(modules, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	return modules, nil
}

// download returns the directories of modules, by name and version.
func download(names []string) (map[string]string, error) {
	cmd := exec.Command("go", append([]string{"mod", "download", "-json"}, names...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	dirs := map[string]string{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var m struct{ Path, Version, Dir string }
		if err := d.Decode(&m); err == io.EOF {
			return dirs, nil
		} else if err != nil {
			return nil, fmt.Errorf("go mod download: %w", err)
		}
		dirs[m.Path+"@"+m.Version] = m.Dir
	}
}

// goLicence returns the licence of Go's standard library and runtime.
func goLicence() ([]licence, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w", err)
	}
	found, err := readLicences(strings.TrimSpace(string(out)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w (Debian's golang packages have it in /usr/share/doc)", runtime.Version(), err)
	}
	return found, nil
}

// readLicences reads the licence files of a module's directory, and the licences that it
// offers in a directory "licenses".
func readLicences(dir string) (found []licence, err error) {
	files, err := fs.Glob(os.DirFS(dir), "*")
	if err != nil {
		return nil, err
	}
	offered, err := fs.Glob(os.DirFS(dir), "licenses/*")
	if err != nil {
		return nil, err
	}
	for _, name := range append(files, offered...) {
		if !isLicence(name) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		l := licence{id: identify(string(text)), text: utf8Text(text)}
		if l.id != "" || !strings.Contains(name, "/") {
			found = append(found, l)
		}
	}
	if len(found) == 0 {
		return nil, errors.New("it has no licence file")
	}
	return found, nil
}

// utf8Text returns text that is in UTF-8 or in Latin-1 as UTF-8, which Debian wants.
func utf8Text(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	runes := make([]rune, len(b))
	for i, c := range b {
		runes[i] = rune(c)
	}
	return string(runes)
}

// isLicence reports whether a file is one that licences are in.
func isLicence(name string) bool {
	if strings.HasPrefix(name, "licenses/") {
		return true
	}
	upper := strings.ToUpper(name)
	return name != "licenses" && (strings.HasPrefix(upper, "LICENSE") || strings.HasPrefix(upper, "COPYING") || upper == "NOTICE")
}
