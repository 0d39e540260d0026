package header

import "slices"

// state is what is known of a field that was asked for.
type state uint8

const (
	absent  state = iota
	present       // there, and nothing in it so far
	filled        // holds an address or a form
)

// collector gathers the senders and forms of all fields, each once.
type collector struct {
	fields  []string
	states  []state
	senders []Sender
	forms   []Form
	most    int // senders and forms together, without those that are Beside
	beside  int // forms that are Beside
	budget  budget

	field  string            // the one that is read
	lost   bool              // its value is a malformed line, which holds no forms
	named  bool              // its value holds an address
	angled bool              // its value holds one in angle brackets
	value  []form            // of the present value
	known  map[form]struct{} // the same, once they are many

	seen      map[Sender]struct{} // the senders, once they are many
	seenForms map[Form]struct{}   // likewise
}

// many is where looking through values becomes slower than a map.
const many = 16

func (c *collector) lookup(name []byte) int {
	for i, f := range c.fields {
		if isName(name, f) {
			return i
		}
	}
	return -1
}

// readField takes one value of the field with index i. Lost says that it is a
// malformed line.
func (c *collector) readField(i int, value string, lost bool) {
	c.budget.spend(workPerValue)
	c.states[i] = max(c.states[i], present)
	c.field, c.lost, c.named, c.angled = c.fields[i], lost, false, false
	c.value, c.known = c.value[:0], nil
	c.read(value)
	if c.named || len(c.value) > 0 {
		c.states[i] = filled
	}
	for _, f := range c.value {
		if f.kind == spacedAt && !c.named {
			keep(&c.senders, &c.seen, Sender{Field: c.field, Address: f.text})
			continue
		}
		beside := f.beside(c.named, c.angled)
		if beside && c.budget.spent() {
			return
		}
		kept := keep(&c.forms, &c.seenForms, Form{
			Field:   c.field,
			Text:    f.text,
			Beside:  beside,
			domain:  f.kind == domainOnly,
			address: f.kind == spacedAt,
		})
		if kept && beside {
			c.budget.spend(workPerBeside)
			c.beside++
		}
	}
}

// take adds what one member of the present value holds.
func (c *collector) take(found []string, forms []form) {
	for _, address := range found {
		c.named = true
		keep(&c.senders, &c.seen, Sender{Field: c.field, Address: address})
	}
	for _, f := range forms {
		if !c.lost || f.kind == spacedAt {
			keep(&c.value, &c.known, f)
		}
	}
}

// full reports whether the header holds more than it may, so that no more of it
// need be read.
func (c *collector) full() bool {
	return c.budget.spent() || len(c.senders)+len(c.forms)-c.beside > c.most
}

// keep appends v to all and reports true, unless it is there. Seen holds all once they
// are many.
func keep[T comparable](all *[]T, seen *map[T]struct{}, v T) bool {
	switch {
	case *seen != nil:
		if _, ok := (*seen)[v]; ok {
			return false
		}
		(*seen)[v] = struct{}{}
	case slices.Contains(*all, v):
		return false
	}
	*all = append(*all, v)
	if *seen == nil && len(*all) >= many {
		*seen = make(map[T]struct{}, 4*many)
		for _, v := range *all {
			(*seen)[v] = struct{}{}
		}
	}
	return true
}
