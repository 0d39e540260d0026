package hashattack

import (
	"context"
	"math/rand/v2"
	"slices"
)

// The layout of the searched part of a name: two storeys of four blocks each, 62
// bytes together; one more byte is still a label. A block consists of two words.
const (
	storeyWidth = 31
	searched    = 2 * storeyWidth
)

// blockWidths are the widths of a storey's blocks, wordWidths those of their words.
var (
	blockWidths = [4]int{8, 7, 8, 8}
	wordWidths  = map[int][2]int{8: {4, 4}, 7: {3, 4}}
)

// Sizes of lists, chosen so that a tower costs three seconds of one core and 100
// MiB, and nearly always succeeds. Of 36^8 texts of a block 10,500 lead to a state
// of 28 bits, and of 36^7 texts 290; of their products at most tableRows are kept.
// Variants of the two storeys and the sixteen final states make
// 3·2^15 · 2^15 · 16 = 6·2^33 tries, of which one in 2^32 succeeds: none of them
// with probability e^-12. If a storey has fewer variants, the probability is
// higher, and the search builds another tower.
const (
	tableRows     = 3 << 20
	frontVariants = 3 << 15
	backVariants  = 1 << 15
)

// tower searches for one name that has three hashes of the target: a
// multicollision after Antoine Joux ("Multicollisions in Iterated Hash
// Functions", CRYPTO 2004) of two storeys, with a meet-in-the-middle search at each
// level.
type tower struct {
	hashes  [3]*chain // the first two of 28-bit states, the second with undo
	target  string
	suffix  string // the end of the name
	between string // separates the storeys; at most maxBetween bytes
	words   map[int]*pool
	random  *rand.Rand
	work    uint64 // states computed
	step    func() // called after each of towerSteps
}

// towerSteps is the number of a tower's steps: eight blocks, two storeys, the final
// search.
const towerSteps = 11

// build makes one attempt. It returns an empty name if there is none.
func (t *tower) build(ctx context.Context) (string, error) {
	path := t.path()
	// The states follow the random path up to the suffix, and end in the target's
	// hashes.
	ground := len(path) - len(t.suffix)
	first, second := t.hashes[0], t.hashes[1]
	front, err := t.storey(ctx, path, 0, t.after(first, path, storeyWidth), t.after(second, path, storeyWidth), frontVariants)
	if err != nil {
		return "", err
	}
	back, err := t.storey(ctx, path, ground-storeyWidth, t.end(first, ground), t.end(second, ground), backVariants)
	if err != nil {
		return "", err
	}
	text, err := t.land(ctx, front, back, path[storeyWidth:ground-storeyWidth], ground)
	t.step()
	if err != nil || text == nil {
		return "", err
	}
	return string(text) + t.suffix, nil
}

// path returns a random name of the layout.
func (t *tower) path() []byte {
	path := make([]byte, searched, maxName)
	for i := range path {
		path[i] = alphabet[t.random.IntN(len(alphabet))]
	}
	path = slices.Insert(path, storeyWidth, []byte(t.between)...)
	return append(path, t.suffix...)
}

// after returns h's state after the first n bytes of path.
func (t *tower) after(h *chain, path []byte, n int) uint32 {
	return h.run(h.start(len(path)), path[:n], 0) & h.mask
}

// end returns the state of h at the position ground from which the suffix leads to
// the target's hash. PJW has sixteen such states, of which the target's own, before
// the same suffix, is one.
func (t *tower) end(h *chain, ground int) uint32 {
	if h.undo == nil {
		own := t.target[:len(t.target)-len(t.suffix)]
		return h.run(h.start(len(t.target)), []byte(own), 0) & h.mask
	}
	return h.undo(h.sum([]byte(t.target)), []byte(t.suffix), ground) & h.mask
}

// landings returns the final states: those of the third hash at the position ground
// from which the suffix leads to the target's bits. There are sixteen on average.
func (t *tower) landings(ground int) []uint32 {
	h := t.hashes[2]
	var ends []uint32
	for top := range uint32(16) {
		ends = h.unrun(ends, h.sum([]byte(t.target))&low28|top<<28, []byte(t.suffix), ground)
	}
	return ends
}

// storey returns texts of storeyWidth for the position at that lead the first two
// hashes from their states on the path to firstEnd and secondEnd: about want, or
// fewer if there are no more.
func (t *tower) storey(ctx context.Context, path []byte, pos int, firstEnd, secondEnd uint32, want int) (*pool, error) {
	var blocks [4]*pool
	target := pos
	for i, width := range blockWidths {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		end := firstEnd
		if i < len(blocks)-1 {
			end = t.after(t.hashes[0], path, target+width)
		}
		blocks[i] = t.block(t.hashes[0], target, width, t.after(t.hashes[0], path, target), end)
		target += width
		t.step()
	}
	p, err := t.join(ctx, blocks, pos, t.after(t.hashes[1], path, pos), secondEnd, want)
	t.step()
	return p, err
}

// block returns the texts of a width for the position at that lead h from one state
// to another: all pairs of words that meet in the middle.
func (t *tower) block(h *chain, pos, width int, from, to uint32) *pool {
	left, right := t.words[wordWidths[width][0]], t.words[wordWidths[width][1]]
	states := make([]uint32, left.size())
	for i := range states {
		states[i] = h.run(from, left.at(i), pos) & h.mask
	}
	met := newTable(states)
	p := &pool{width: left.width + right.width}
	var before []uint32
	for i := range right.size() {
		word := right.at(i)
		before = h.unrun(before[:0], to, word, pos+left.width)
		for _, state := range before {
			state &= h.mask
			for _, r := range met.near(state) {
				if r.state == state {
					p.text = append(append(p.text, left.at(int(r.number))...), word...)
				}
			}
		}
	}
	t.work += uint64(left.size() + right.size())
	return p
}

// join returns the combinations of the blocks that lead the second hash from one
// state to another. All combinations are equal for the first hash.
func (t *tower) join(ctx context.Context, blocks [4]*pool, pos int, from, to uint32, want int) (*pool, error) {
	h := t.hashes[1]
	a, b, c, d := blocks[0], blocks[1], blocks[2], blocks[3]
	var states []uint32
	for i := range a.size() {
		if len(states)+b.size() > tableRows {
			break
		}
		state := h.run(from, a.at(i), pos)
		for j := range b.size() {
			states = append(states, h.run(state, b.at(j), pos+a.width)&h.mask)
		}
	}
	met := newTable(states)
	t.work += uint64(len(states))
	p := &pool{width: a.width + b.width + c.width + d.width}
	atC := pos + a.width + b.width
	for j := range d.size() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		after := h.undo(to, d.at(j), atC+c.width)
		for i := range c.size() {
			state := h.undo(after, c.at(i), atC) & h.mask
			for _, r := range met.near(state) {
				if r.state == state {
					n := int(r.number)
					p.text = append(append(p.text, a.at(n/b.size())...), b.at(n%b.size())...)
					p.text = append(append(p.text, c.at(i)...), d.at(j)...)
				}
			}
		}
		t.work += uint64(c.size())
		if p.size() >= want {
			break
		}
	}
	return p, nil
}

// land searches for a front and a back that lead the third hash to the target's, of
// which the filter uses 28 bits: the other four may differ. It returns nil if there
// are none.
func (t *tower) land(ctx context.Context, front, back *pool, between []byte, ground int) ([]byte, error) {
	h := t.hashes[2]
	start := h.start(ground + len(t.suffix))
	states := make([]uint32, front.size())
	for i := range states {
		states[i] = h.run(h.run(start, front.at(i), 0), between, storeyWidth)
	}
	met := newTable(states)
	ends := t.landings(ground)
	var before []uint32
	t.work += uint64(front.size() + back.size()*len(ends))
	for i := range back.size() {
		if i%256 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for _, end := range ends {
			before = h.unrun(before[:0], end, back.at(i), ground-storeyWidth)
			for _, state := range before {
				for _, r := range met.near(state) {
					if r.state == state {
						return slices.Concat(front.at(int(r.number)), between, back.at(i)), nil
					}
				}
			}
		}
	}
	return nil, nil
}
