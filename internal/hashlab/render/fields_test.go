package render

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"spamgate/internal/hashlab"
)

// fieldRow is what docs/hash-families-fields.md says of a field.
type fieldRow struct {
	meaning, limits string
	met             bool // the field is there
}

// fieldPage is the lists of the page: by section, and in it by field. The section "rows"
// has what means the same in all lists.
type fieldPage map[string]map[string]*fieldRow

// row returns what the page says of a field, or nil.
func (p fieldPage) row(section, field string) *fieldRow {
	if row := p[section][field]; row != nil {
		return row
	}
	return p["rows"][field]
}

// fieldLine is a field of the page: its name, its range unless it is a text, and its meaning.
var fieldLine = regexp.MustCompile("(?s)^- `([^`]+)`(?: \\(([^)]*)\\))?: (.+)$")

// readFields reads the lists of the page.
func readFields(t *testing.T) fieldPage {
	t.Helper()
	text, err := os.ReadFile("../../../docs/hash-families-fields.md")
	if err != nil {
		t.Fatal(err)
	}
	// "Fields of `fpr`:" stands before a list, perhaps over two lines.
	begin := regexp.MustCompile("(?:Fields|Columns|Metrics) of\\s`([a-z_.]+)`:\n\n")
	all := make(fieldPage)
	for _, m := range begin.FindAllSubmatchIndex(text, -1) {
		list, _, _ := strings.Cut(string(text[m[1]:]), "\n\n")
		rows := make(map[string]*fieldRow)
		for _, item := range strings.Split(strings.TrimSpace(strings.ReplaceAll(list, "\n  ", " ")), "\n") {
			parts := fieldLine.FindStringSubmatch(item)
			if parts == nil {
				t.Fatalf("%q is not a field", item)
			}
			name := parts[1]
			if rows[name] != nil {
				t.Errorf("%s: %s is there twice", text[m[2]:m[3]], name)
			}
			rows[name] = &fieldRow{meaning: parts[3], limits: parts[2]}
		}
		all[string(text[m[2]:m[3]])] = rows
	}
	return all
}

// jsonFields returns the fields of a struct that JSON has, with those of embedded
// structs.
func jsonFields(t reflect.Type) []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { return f.Anonymous })
}

// walkFields calls visit with each field of a report, its section and what it
// holds: all numbers of a matrix, all rows of a list.
func walkFields(v reflect.Value, section string, visit func(section, field string, t reflect.Type, v reflect.Value)) {
	if v.Type() == reflect.TypeFor[hashlab.Interval]() {
		section = "interval"
	}
	for _, f := range jsonFields(v.Type()) {
		name, value := f.Tag.Get("json"), v.FieldByIndex(f.Index)
		visit(section, name, f.Type, value)
		inner := strings.TrimPrefix(section+"."+name, "report.")
		switch {
		case f.Type.Kind() == reflect.Struct:
			walkFields(value, inner, visit)
		case f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct:
			walkFields(reflect.New(f.Type.Elem()).Elem(), inner, visit) // so that a list without rows is looked at, too
			for i := range value.Len() {
				walkFields(value.Index(i), inner, visit)
			}
		}
	}
}

// TestFieldsAreDescribed wants each field of the JSON and each column and metric
// of the CSV on the page, and nothing else.
func TestFieldsAreDescribed(t *testing.T) {
	page := readFields(t)
	describes := func(section, field string) bool {
		row := page.row(section, field)
		if row == nil {
			return false
		}
		row.met = true
		return row.meaning != ""
	}
	missing := make(map[string]bool)
	walkFields(reflect.ValueOf(*new(hashlab.Report)), "report", func(section, field string, _ reflect.Type, _ reflect.Value) {
		if !describes(section, field) {
			missing[section+": "+field] = true
		}
	})
	for _, column := range CSVHeader {
		if !describes("csv", column) {
			missing["csv: "+column] = true
		}
	}
	var out bytes.Buffer
	if err := CSV(&out, fixture()); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines[1:] {
		section, metric := line[0], line[8]
		if section == "summary" || describes(section, metric) || describes("csv."+section, metric) ||
			section == "manifest" && (describes("manifest.corpora", metric) || describes("report", metric)) {
			continue
		}
		missing["csv, "+section+": "+metric] = true
	}
	for name := range missing {
		t.Errorf("docs/hash-families-fields.md says too little of %s", name)
	}
	for section, rows := range page {
		for field, row := range rows {
			if !row.met {
				t.Errorf("docs/hash-families-fields.md has %s: %s, which is no field", section, field)
			}
		}
	}
}

// TestFieldsInRange wants the numbers and words of reports in the ranges that
// the page tells, and a range wherever there are numbers.
func TestFieldsInRange(t *testing.T) {
	page := readFields(t)
	for name, r := range map[string]*hashlab.Report{"fixture": fixture(), "zero hits": zeroHits()} {
		walkFields(reflect.ValueOf(*r), "report", func(section, field string, fieldType reflect.Type, v reflect.Value) {
			row := page.row(section, field)
			if row == nil || v.IsZero() || section == "interval" { // TestFieldsAreDescribed says so; of a row that is not there; told by the field
				return
			}
			if err := inRange(row.limits, v); err != nil {
				t.Errorf("%s: %s: %s is %v, want %q: %v", name, section, field, v, row.limits, err)
			}
		})
	}
}

// inRange returns an error if a value is outside of a range.
func inRange(limits string, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			if v.Type().Elem().Kind() == reflect.Struct {
				return nil // has fields of its own
			}
			if err := inRange(limits, v.Index(i)); err != nil {
				return err
			}
		}
		return nil
	case reflect.Struct:
		i, ok := v.Interface().(hashlab.Interval)
		if !ok {
			return nil
		}
		for _, x := range []float64{i.Value, i.Low, i.High} {
			if hashlab.Known(x) {
				if err := inRange(limits, reflect.ValueOf(x)); err != nil {
					return err
				}
			}
		}
		return nil
	case reflect.String:
		if strings.Contains(limits, `"`) && !strings.Contains(limits, strconv.Quote(v.String())) {
			return fmt.Errorf("not one of these")
		}
		return nil
	case reflect.Bool:
		if limits != "true, false" {
			return fmt.Errorf("a range of true and false")
		}
		return nil
	}
	x, err := strconv.ParseFloat(fmt.Sprint(v), 64)
	if err != nil {
		return err
	}
	var low, high float64
	if _, err := fmt.Sscanf(limits, "at least %g", &low); err == nil {
		high = inf
	} else if _, err := fmt.Sscanf(limits, "%g to %g", &low, &high); err != nil {
		return fmt.Errorf("a number's range is \"at least A\" or \"A to B\"")
	}
	if !(low <= x && x <= high) {
		return fmt.Errorf("outside")
	}
	return nil
}

// TestInRange checks inRange.
func TestInRange(t *testing.T) {
	for _, c := range []struct {
		limits string
		value  any
		good   bool
	}{
		{"0 to 1", 0.5, true}, {"0 to 1", 1.5, false}, {"-1 to 1", -1.0, true}, {"at least 10", 10, true}, {"at least 10", uint64(9), false}, {"", 1, false},
		{"0 to 1", [][]float64{{0, 1}, {0.5, 2}}, false}, {"0 to 1", [][]float64{{0, 1}, {0.5, 1}}, true}, {"0 to 1", limits(0.5, -0.1, 0.6), false},
		{"at least 0", limits(inf, 4, inf), true}, {`"low", "high"`, "high", true}, {`"low", "high"`, "middle", false}, {"", "text", true},
		{"true, false", true, true}, {"0 to 1", true, false},
	} {
		if err := inRange(c.limits, reflect.ValueOf(c.value)); (err == nil) != c.good {
			t.Errorf("%v in %q: %v", c.value, c.limits, err)
		}
	}
}
