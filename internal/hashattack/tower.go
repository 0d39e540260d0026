package hashattack

import (
	"context"
	"math/rand/v2"
	"slices"
)

// The layout of the searched part of a name: two storeys of four blocks each, 62
// bytes together, which with one more byte is still a label. A block is joined
// from two words.
const (
	storeyWidth = 31
	searched    = 2 * storeyWidth
)

// blockWidths are the widths of a storey's blocks, wordWidths of their words.
var (
	blockWidths = [4]int{8, 7, 8, 8}
	wordWidths  = map[int][2]int{8: {4, 4}, 7: {3, 4}}
)

// Sizes of lists, chosen so that a tower costs three seconds of one core and 100
// MiB, and nearly always stands. In a state of 28 bits 36^8 words of a block
// leave 10,500, and 36^7 leave 290; products of these are cut to tableRows to be
// kept. Variants of the two storeys and the sixteen states to land in make
// 3·2^15 · 2^15 · 16 = 6·2^33 tries, of which one in 2^32 fits: none of them with
// a chance of e^-12. Where a storey yields less than is wanted, the chance is
// worse, and the tower is built anew.
const (
	tableRows     = 3 << 20
	frontVariants = 3 << 15
	backVariants  = 1 << 15
)

// tower searches for one name that has three hashes of the target: a
// multicollision after Antoine Joux ("Multicollisions in Iterated Hash
// Functions", CRYPTO 2004), two storeys high, with a meeting in the middle on
// every floor.
type tower struct {
	hashes  [3]*chain // the first two of 28-bit states, the second with undo
	target  string
	suffix  string // what the name ends in
	between string // the storeys; at most maxBetween bytes
	words   map[int]*pool
	random  *rand.Rand
	work    uint64 // states computed
	step    func() // called after each of towerSteps
}

// towerSteps is how many steps a tower takes: eight blocks, two storeys, the
// landing.
const towerSteps = 11

// build makes one attempt. An empty name says that there was none this time.
func (t *tower) build(ctx context.Context) (string, error) {
	path := t.path()
	// The random path is left just before the suffix, to land in the target's
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

// path is a random name of the layout.
func (t *tower) path() []byte {
	path := make([]byte, searched, maxName)
	for i := range path {
		path[i] = alphabet[t.random.IntN(len(alphabet))]
	}
	path = slices.Insert(path, storeyWidth, []byte(t.between)...)
	return append(path, t.suffix...)
}

// after is h's state after the first n bytes of path.
func (t *tower) after(h *chain, path []byte, n int) uint32 {
	return h.run(h.start(len(path)), path[:n], 0) & h.mask
}

// end is the state of h at the place ground from which the suffix leads to the
// target's hash. PJW has sixteen such states; the target's own, before the same
// suffix, is one.
func (t *tower) end(h *chain, ground int) uint32 {
	if h.undo == nil {
		own := t.target[:len(t.target)-len(t.suffix)]
		return h.run(h.start(len(t.target)), []byte(own), 0) & h.mask
	}
	return h.undo(h.sum([]byte(t.target)), []byte(t.suffix), ground) & h.mask
}

// landings are the states of the third hash at the place ground from which the
// suffix leads to the target's bits: sixteen on average.
func (t *tower) landings(ground int) []uint32 {
	h := t.hashes[2]
	var ends []uint32
	for top := range uint32(16) {
		ends = h.unrun(ends, h.sum([]byte(t.target))&low28|top<<28, []byte(t.suffix), ground)
	}
	return ends
}

// storey lists texts of storeyWidth for the place at that lead the first two
// hashes from their states on the path to firstEnd and secondEnd: some of want,
// or fewer where there are no more.
func (t *tower) storey(ctx context.Context, path []byte, at int, firstEnd, secondEnd uint32, want int) (*pool, error) {
	var blocks [4]*pool
	place := at
	for i, width := range blockWidths {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		end := firstEnd
		if i < len(blocks)-1 {
			end = t.after(t.hashes[0], path, place+width)
		}
		blocks[i] = t.block(t.hashes[0], place, width, t.after(t.hashes[0], path, place), end)
		place += width
		t.step()
	}
	p, err := t.join(ctx, blocks, at, t.after(t.hashes[1], path, at), secondEnd, want)
	t.step()
	return p, err
}

// block lists the texts of a width for the place at that lead h from one state
// to another: all pairs of words that meet in the middle.
func (t *tower) block(h *chain, at, width int, from, to uint32) *pool {
	left, right := t.words[wordWidths[width][0]], t.words[wordWidths[width][1]]
	states := make([]uint32, left.size())
	for i := range states {
		states[i] = h.run(from, left.at(i), at) & h.mask
	}
	met := newTable(states)
	p := &pool{width: left.width + right.width}
	var before []uint32
	for i := range right.size() {
		word := right.at(i)
		before = h.unrun(before[:0], to, word, at+left.width)
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

// join picks from each block so that the four together lead the second hash from
// one state to another. Whatever is picked, the first hash does not notice.
func (t *tower) join(ctx context.Context, blocks [4]*pool, at int, from, to uint32, want int) (*pool, error) {
	h := t.hashes[1]
	a, b, c, d := blocks[0], blocks[1], blocks[2], blocks[3]
	var states []uint32
	for i := range a.size() {
		if len(states)+b.size() > tableRows {
			break
		}
		state := h.run(from, a.at(i), at)
		for j := range b.size() {
			states = append(states, h.run(state, b.at(j), at+a.width)&h.mask)
		}
	}
	met := newTable(states)
	t.work += uint64(len(states))
	p := &pool{width: a.width + b.width + c.width + d.width}
	atC := at + a.width + b.width
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

// land looks for a front and a back that lead the third hash to the target's.
// Of that hash the filter sees 28 bits: the other four may be anything. It
// returns nil where there is none.
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
