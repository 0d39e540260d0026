package console

import (
	"bytes"
	"encoding"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"spamgate/docs"
	"spamgate/internal/admin"
	"spamgate/internal/operation"
)

var update = flag.Bool("update", false, "write docs/openapi.json")

const openAPIFile = "../../docs/openapi.json"

// TestOpenAPI compares docs/openapi.json with the routes, their fields and their types.
func TestOpenAPI(t *testing.T) {
	got, err := json.MarshalIndent(describeAPI(t), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile(openAPIFile, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(got, docs.OpenAPI) {
		t.Errorf("%s is not what the code says: run go test ./internal/console -run TestOpenAPI -update", openAPIFile)
	}
}

// TestOpenAPIHasAllRoutes compares the paths with those of the router itself.
func TestOpenAPIHasAllRoutes(t *testing.T) {
	if *update {
		t.Skip("the file is being written")
	}
	var spec struct{ Paths map[string]map[string]any }
	if err := json.Unmarshal(docs.OpenAPI, &spec); err != nil {
		t.Fatal(err)
	}
	described := map[string]bool{}
	for path, methods := range spec.Paths {
		for method := range methods {
			described[strings.ToUpper(method)+" "+path] = true
		}
	}
	for _, r := range (&Console{routes: allRoutes()}).Routes() {
		if name := r.Method + " " + r.Path; strings.HasPrefix(r.Path, "/api/") {
			if !described[name] {
				t.Errorf("%s is not described", name)
			}
			delete(described, name)
		}
	}
	for name := range described {
		t.Errorf("%s is described, but there is no such route", name)
	}
}

type object = map[string]any

// describeAPI returns the OpenAPI document of the operations.
func describeAPI(t *testing.T) object {
	s := &schemas{t: t, named: object{}, types: map[string]reflect.Type{}, comments: map[string]map[string]string{}}
	paths := object{
		"/api/openapi.json": object{"get": object{
			"operationId": "openapi", "summary": "This document",
			"responses": object{"200": object{"description": "The document", "content": object{"application/json": object{"schema": object{"type": "object"}}}}},
		}},
	}
	for _, of := range operations() {
		op := of.About()
		path, _ := paths[apiRoot+op.Path].(object)
		if path == nil {
			path = object{}
			paths[apiRoot+op.Path] = path
		}
		path[strings.ToLower(op.Method)] = s.operation(op)
	}
	s.of(reflect.TypeFor[apiError]())
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "spamgate", "version": "1",
			"description": "The API of the console. It takes the tokens that `spamgate console token add` prints.",
		},
		"security":   []object{{"token": []string{}}},
		"paths":      paths,
		"components": object{"schemas": s.named, "securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}}},
	}
}

// schemas collects the schemas of Go types.
type schemas struct {
	t        *testing.T
	named    object                       // by name
	types    map[string]reflect.Type      // of the named ones
	comments map[string]map[string]string // of fields, by package path, then "Type.Field"
}

var inPath = regexp.MustCompile(`\{(\w+)\}`)

// pathParameters describes the parts of paths.
var pathParameters = map[string]string{
	"name":  "The name of a list",
	"entry": "An entry of the list, as the list has it",
	"id":    "The id of a change",
}

func (s *schemas) operation(op *operation.Row) object {
	o := object{"operationId": op.Name, "summary": op.Summary, "description": "Needs the right to " + op.May.String() + "."}
	var parameters []object
	for _, m := range inPath.FindAllStringSubmatch(op.Path, -1) {
		if pathParameters[m[1]] == "" {
			s.t.Errorf("%s: pathParameters lacks %s", op.Path, m[1])
		}
		parameters = append(parameters, object{"name": m[1], "in": "path", "required": true, "description": pathParameters[m[1]], "schema": object{"type": "string"}})
	}
	for _, p := range op.Query {
		schema := object{"type": "string"}
		if p.Values != nil {
			schema["enum"] = p.Values
		}
		if p.Repeated {
			schema = object{"type": "array", "items": schema}
		}
		parameter := object{"name": p.Name, "in": "query", "description": p.What, "schema": schema}
		if p.Required {
			parameter["required"] = true
		}
		parameters = append(parameters, parameter)
	}
	if parameters != nil {
		o["parameters"] = parameters
	}
	if op.Request != any(none{}) {
		o["requestBody"] = object{"required": true, "content": s.content(op.Request)}
	}
	responses := object{"default": object{"description": "An error", "content": s.content(apiError{})}}
	for _, a := range op.Answers {
		responses[strconv.Itoa(a.Status)] = object{"description": a.What, "content": s.content(op.Reply)}
	}
	o["responses"] = responses
	return o
}

func (s *schemas) content(value any) object {
	schema := object{"type": "object"}
	if value != nil {
		schema = s.of(reflect.TypeOf(value))
	}
	return object{"application/json": object{"schema": schema}}
}

// of returns the schema of a type as encoding/json writes it.
func (s *schemas) of(t reflect.Type) object {
	switch {
	case t.Kind() == reflect.Pointer:
		return s.of(t.Elem())
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[admin.Rate]():
		return object{"type": []string{"number", "null"}}
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return object{"type": "string"}
	case t.Implements(reflect.TypeFor[json.Marshaler]()):
		return object{}
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice, reflect.Array:
		return object{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Interface:
		return object{}
	case reflect.Struct:
		return s.ref(t)
	}
	if t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64 {
		return object{"type": "integer"}
	}
	s.t.Fatalf("the API has no schema for %v", t)
	return nil
}

// ref returns a reference to the schema of a struct.
func (s *schemas) ref(t reflect.Type) object {
	name := strings.TrimPrefix(t.Name(), "api")
	name = strings.ToUpper(name[:1]) + name[1:]
	ref := object{"$ref": "#/components/schemas/" + name}
	if old, ok := s.types[name]; ok {
		if old != t {
			s.t.Errorf("two types %s: %v and %v", name, old, t)
		}
		return ref
	}
	schema := object{"type": "object", "additionalProperties": false}
	s.named[name], s.types[name] = schema, t
	properties, required := object{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || tag == "-" || f.Anonymous && tag == "" {
			continue
		}
		if tag == "" {
			s.t.Errorf("%v.%s has no name in JSON", t, f.Name)
			continue
		}
		property := maps.Clone(s.of(f.Type))
		if c := s.comment(t, f); c != "" {
			property["description"] = c
		}
		properties[tag] = property
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			required = append(required, tag)
		}
	}
	schema["properties"] = properties
	if len(required) > 0 {
		slices.Sort(required)
		schema["required"] = required
	}
	return ref
}

// comment returns what the source says about a field.
func (s *schemas) comment(t reflect.Type, f reflect.StructField) string {
	if len(f.Index) > 1 { // of an embedded struct
		t = t.FieldByIndex(f.Index[:len(f.Index)-1]).Type
	}
	all, ok := s.comments[t.PkgPath()]
	if !ok {
		all = fieldComments(s.t, filepath.Join("..", "..", strings.TrimPrefix(t.PkgPath(), "spamgate/")))
		s.comments[t.PkgPath()] = all
	}
	return all[t.Name()+"."+f.Name]
}

// fieldComments returns the comments of the fields of a package's structs.
func fieldComments(t *testing.T, dir string) map[string]string {
	all := map[string]string{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no Go files: %v", dir, err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if structure, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range structure.Fields.List {
					for _, fieldName := range f.Names {
						text := f.Doc.Text() + f.Comment.Text()
						all[spec.Name.Name+"."+fieldName.Name] = strings.Join(strings.Fields(text), " ")
					}
				}
			}
			return true
		})
	}
	return all
}
