package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// switchPackage holds the number of the bug that is switched on. Programs that tests start
// with an environment of their own take the number from the processes above them.
const switchPackage = `package mutantswitch

import (
	"bytes"
	"os"
	"strconv"
)

var Number = number()

func number() int {
	n, err := strconv.Atoi(os.Getenv("MUTANT"))
	for pid := os.Getppid(); err != nil && pid > 1; {
		p := "/proc/" + strconv.Itoa(pid)
		environ, _ := os.ReadFile(p + "/environ")
		if _, value, ok := bytes.Cut(environ, []byte("MUTANT=")); ok {
			value, _, _ = bytes.Cut(value, []byte{0})
			n, err = strconv.Atoi(string(value))
		}
		stat, _ := os.ReadFile(p + "/stat")
		_, stat, _ = bytes.Cut(stat, []byte(") "))
		fields := append(bytes.Fields(stat), nil, nil)
		pid, _ = strconv.Atoi(string(fields[1]))
	}
	return n
}
`

// switched is a file with bugs that a number switches on, so that one build has all. The
// number is the index of a bug and 1. For each bug that changes the body of a function, it has a copy of the function with the
// change. The function itself begins with a call of the copy. For a variable of the package
// there is an init that sets it.
type switched struct {
	src    []byte
	module string
	fset   *token.FileSet
	file   *ast.File
	edits  map[int]edit // by their offset in src
	copies []copied     // declarations that come after src
}

// edit replaces the text up to an offset.
type edit struct {
	end  int
	text string
}

// copied is a declaration with a bug.
type copied struct {
	text string
	bug  int // its index
}

func newSwitched(src []byte, module string) (*switched, error) {
	s := &switched{src: src, module: module, fset: token.NewFileSet(), edits: map[int]edit{}}
	var err error
	s.file, err = parser.ParseFile(s.fset, "", src, parser.SkipObjectResolution)
	return s, err
}

func (s *switched) at(p token.Pos) int { return s.fset.PositionFor(p, false).Offset }

// add plants a bug, and reports whether its change can be switched.
func (s *switched) add(b *bug, index int) bool {
	from := bytes.Index(s.src, []byte(b.Old))
	old, changed := b.Old, b.New
	for old != "" && changed != "" && old[0] == changed[0] {
		old, changed, from = old[1:], changed[1:], from+1
	}
	to := from + len(old)
	for old != "" && changed != "" && old[len(old)-1] == changed[len(changed)-1] {
		old, changed, to = old[:len(old)-1], changed[:len(changed)-1], to-1
	}
	within := func(a, b token.Pos) bool { return s.at(a) <= from && to <= s.at(b) }
	with := func(a, b token.Pos) string { return string(s.src[s.at(a):from]) + changed + string(s.src[to:s.at(b)]) }
	for _, d := range s.file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Body != nil && within(d.Body.Lbrace+1, d.Body.Rbrace) {
				return s.addFunc(d, index, with(d.Name.End(), d.End()))
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				v, ok := spec.(*ast.ValueSpec)
				for i := 0; ok && d.Tok == token.VAR && i < len(v.Values) && len(v.Names) == len(v.Values); i++ {
					if e := v.Values[i]; within(e.Pos(), e.End()) {
						set := fmt.Sprintf("%s = %s", v.Names[i].Name, with(e.Pos(), e.End()))
						return s.copy(index, fmt.Sprintf("func init() { if mutantswitch.Number == %d { %s } }", index+1, set))
					}
				}
			}
		}
	}
	return false
}

// addFunc adds a copy of a function, whose text after its name is rest, and the call of it.
func (s *switched) addFunc(d *ast.FuncDecl, index int, rest string) bool {
	name := fmt.Sprintf("mutant%d_%s", index, d.Name.Name)
	call, receiver := name, ""
	if d.Recv != nil {
		receiver = string(s.src[s.at(d.Recv.Pos()):s.at(d.Recv.End())]) + " "
	}
	if !s.copy(index, "func "+receiver+name+rest) {
		return false
	}
	if d.Recv != nil {
		call = s.arguments("r", d.Recv)[0] + "." + name
	}
	if d.Type.TypeParams != nil {
		call += "[" + strings.Join(s.arguments("t", d.Type.TypeParams), ", ") + "]"
	}
	call += "(" + strings.Join(s.arguments("p", d.Type.Params), ", ") + ")"
	if d.Type.Results != nil {
		call = "return " + call
	} else {
		call += "; return"
	}
	begin := s.at(d.Body.Lbrace) + 1
	s.edits[begin] = edit{begin, s.edits[begin].text + fmt.Sprintf(" if mutantswitch.Number == %d { %s };", index+1, call)}
	return true
}

// arguments returns the names of parameters as arguments. It names those without a name.
func (s *switched) arguments(prefix string, fields *ast.FieldList) (names []string) {
	for _, f := range fields.List {
		dots := ""
		if _, ok := f.Type.(*ast.Ellipsis); ok {
			dots = "..."
		}
		if len(f.Names) == 0 {
			name := fmt.Sprintf("mutant_%s%d", prefix, len(names))
			s.edits[s.at(f.Type.Pos())] = edit{s.at(f.Type.Pos()), name + " "}
			names = append(names, name+dots)
		}
		for _, n := range f.Names {
			name := n.Name
			if name == "_" {
				name = fmt.Sprintf("mutant_%s%d", prefix, len(names))
				s.edits[s.at(n.Pos())] = edit{s.at(n.End()), name}
			}
			names = append(names, name+dots)
		}
	}
	return names
}

// copy adds a declaration behind the file, and reports whether its syntax is right.
func (s *switched) copy(index int, text string) bool {
	if _, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+text, parser.SkipObjectResolution); err != nil {
		return false
	}
	s.copies = append(s.copies, copied{text, index})
	return true
}

// result returns the file with its bugs, and the bug of each line of a copy.
func (s *switched) result() (text []byte, bugOf map[int]int) {
	if len(s.copies) == 0 {
		return s.src, nil
	}
	bugOf = map[int]int{}
	name := s.at(s.file.Name.End())
	s.edits[name] = edit{name, "; import mutantswitch \"" + s.module + "/internal/mutantswitch\""}
	var out bytes.Buffer
	done := 0
	for _, from := range slices.Sorted(maps.Keys(s.edits)) {
		out.Write(s.src[done:from])
		out.WriteString(s.edits[from].text)
		done = s.edits[from].end
	}
	out.Write(s.src[done:])
	out.WriteString("\n")
	for _, c := range s.copies {
		first := 1 + bytes.Count(out.Bytes(), []byte("\n"))
		out.WriteString(c.text + "\n")
		for line := first; line <= first+strings.Count(c.text, "\n"); line++ {
			bugOf[line] = c.bug
		}
	}
	return out.Bytes(), bugOf
}

// plant plants the bugs of these indexes, and calls failed for those that cannot be switched
// on. It returns the bug of each line "file:number" of a copy.
func (c *checkout) plant(bugs []bug, indexes []int, failed func(i int, err error)) (bugOf map[string]int, err error) {
	files := map[string]*switched{}
	for name, text := range c.clean {
		if files[name], err = newSwitched(text, c.module); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, i := range indexes {
		if !files[bugs[i].File].add(&bugs[i], i) {
			failed(i, fmt.Errorf("%s: the change is not within a function or a variable, or its syntax is wrong", bugs[i].File))
		}
	}
	bugOf = map[string]int{}
	for name, s := range files {
		text, lines := s.result()
		for line, i := range lines {
			bugOf[fmt.Sprintf("%s:%d", name, line)] = i
		}
		if err := c.write(name, text); err != nil {
			return nil, err
		}
	}
	return bugOf, c.write("internal/mutantswitch/switch.go", []byte(switchPackage))
}
