package header

import "slices"

// fieldState is the state of a field that the caller has named.
type fieldState uint8

const (
	absent  fieldState = iota
	present            // it exists, without an address or a form so far
	filled             // it has an address or a form
)

// collector collects the senders and forms of all fields, each once.
type collector struct {
	fields  []string
	states  []fieldState
	senders []Sender
	forms   []Form
	most    int // senders and forms together, except forms that are Beside
	beside  int // forms that are Beside
	budget  budget

	unreadable []Sender

	field     string            // the present field
	lost      bool              // its value is a malformed line, which has no forms
	named     bool              // its value has an address
	angled    bool              // its value has an address in angle brackets
	guessing  bool              // the present reading is not the first one
	malformed bool              // readers disagree about what is text in the present value
	plain     bool              // the first reading has found an address by the grammar
	open      []string          // fields with a value whose marks are unclear
	value     []form            // the forms of the present value
	valueSet  map[form]struct{} // the same, if there are many

	senderSet map[Sender]struct{} // the senders, if there are many
	formSet   map[Form]struct{}   // the forms, if there are many
}

// many is the number of values from which a map is faster than a search.
const many = 16

// readField reads one value of the field with index i, still folded. Lost says that it is a
// malformed line.
func (c *collector) readField(i int, folded []byte, lost bool) {
	c.budget.spend(workPerValue)
	c.states[i] = max(c.states[i], present)
	c.field, c.lost, c.named, c.angled = c.fields[i], lost, false, false
	c.value, c.valueSet = c.value[:0], nil
	value := unfold(folded)
	c.read(value)
	c.guess(folded, value)
	if c.malformed {
		c.open, c.malformed = append(c.open, c.field), false
	}
	if c.named || len(c.value) > 0 {
		c.states[i] = filled
	}
	for _, f := range c.value {
		sender := Sender{Field: c.field, Address: f.text}
		switch {
		case f.kind == spacedAt && !c.named:
			addOnce(&c.senders, &c.senderSet, sender)
			continue
		case f.kind == guessed && has(c.senders, c.senderSet, sender):
			continue
		}
		beside := f.beside(c.named, c.angled)
		if beside && c.budget.spent() {
			return
		}
		added := addOnce(&c.forms, &c.formSet, Form{
			Field:   c.field,
			Text:    f.text,
			Beside:  beside,
			domain:  f.kind == domainOnly,
			address: f.kind == spacedAt || f.kind == guessed,
		})
		if added && beside {
			c.budget.spend(workPerBeside)
			c.beside++
		}
	}
}

// take adds the addresses and forms of one member of the present value.
func (c *collector) take(found []string, forms []form) {
	for _, address := range found {
		if c.guessing {
			addOnce(&c.value, &c.valueSet, form{text: address, kind: guessed})
			continue
		}
		c.named = true
		addOnce(&c.senders, &c.senderSet, Sender{Field: c.field, Address: address})
	}
	for _, f := range forms {
		if c.guessing && c.named && f.kind == bareWord {
			continue
		}
		if !c.lost || f.kind == spacedAt || f.kind == guessed {
			addOnce(&c.value, &c.valueSet, f)
		}
	}
}

// full reports whether the header has more than it may, so that reading can stop.
func (c *collector) full() bool {
	return c.budget.spent() || len(c.senders)+len(c.forms)-c.beside > c.most
}

// has reports whether all contains v. Set has the values of all if there are many.
func has[T comparable](all []T, set map[T]struct{}, v T) bool {
	if set == nil {
		return slices.Contains(all, v)
	}
	_, ok := set[v]
	return ok
}

// addOnce appends v to all unless all contains it, and reports whether it did. Set has the
// values of all if there are many.
func addOnce[T comparable](all *[]T, set *map[T]struct{}, v T) bool {
	if has(*all, *set, v) {
		return false
	}
	if *set != nil {
		(*set)[v] = struct{}{}
	}
	*all = append(*all, v)
	if *set == nil && len(*all) >= many {
		*set = make(map[T]struct{}, 4*many)
		for _, v := range *all {
			(*set)[v] = struct{}{}
		}
	}
	return true
}
