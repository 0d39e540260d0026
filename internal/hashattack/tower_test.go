package hashattack

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestWords(t *testing.T) {
	p := words(2)
	if p.size() != len(alphabet)*len(alphabet) || string(p.at(0)) != "00" || string(p.at(37)) != "11" || string(p.at(p.size()-1)) != "zz" {
		t.Errorf("%d words, first %s, last %s", p.size(), p.at(0), p.at(p.size()-1))
	}
}

// TestTable files numbers under few states and wants each back, in order.
func TestTable(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{0, 1, 2, 3, 1000} {
		states := make([]uint32, n)
		want := map[uint32][]uint32{}
		for i := range states {
			states[i] = random.Uint32N(200) << 22
			want[states[i]] = append(want[states[i]], uint32(i))
		}
		met := newTable(states)
		for s := range uint32(256) {
			s <<= 22
			var got []uint32
			for _, r := range met.near(s) {
				if r.state == s {
					got = append(got, r.number)
				}
			}
			if !slices.Equal(got, want[s]) {
				t.Errorf("%d numbers, state %#x: %v, want %v", n, s, got, want[s])
			}
		}
	}
}

// smallTower has words of one and two bytes, so that all texts of a block can be
// tried one by one.
func smallTower(hashes ...string) *tower {
	t := &tower{
		target: "example.com",
		suffix: ".com",
		words:  map[int]*pool{3: words(1), 4: words(2)},
		random: rand.New(rand.NewPCG(1, 1)),
		step:   func() {},
	}
	for i, name := range hashes {
		t.hashes[i] = chains()[name]
	}
	return t
}

// TestBlockFindsAll compares the meeting in the middle with trying every text.
func TestBlockFindsAll(t *testing.T) {
	all := words(3)
	for _, team := range teams {
		tower := smallTower(team[:]...)
		for _, h := range tower.hashes[:2] {
			for range 5 {
				pos := tower.random.IntN(20)
				from := tower.random.Uint32() & h.mask
				to := h.run(from, all.at(tower.random.IntN(all.size())), pos) & h.mask
				var want []string
				for i := range all.size() {
					if h.run(from, all.at(i), pos)&h.mask == to {
						want = append(want, string(all.at(i)))
					}
				}
				got := texts(tower.block(h, pos, 7, from, to))
				if !slices.Equal(got, want) {
					t.Errorf("%s: %q, want %q", h.name, got, want)
				}
			}
		}
	}
}

// texts returns the sorted content of a pool.
func texts(p *pool) []string {
	var all []string
	for i := range p.size() {
		all = append(all, string(p.at(i)))
	}
	slices.Sort(all)
	return all
}

// TestJoinFindsAll compares join with trying every choice from four lists.
func TestJoinFindsAll(t *testing.T) {
	for _, team := range teams {
		tower := smallTower(team[:]...)
		h := tower.hashes[1]
		var blocks [4]*pool
		for i := range blocks {
			blocks[i] = &pool{width: 2}
			for range 12 {
				blocks[i].text = append(blocks[i].text, words(2).at(tower.random.IntN(1296))...)
			}
		}
		const at = 5
		from := tower.random.Uint32() & h.mask
		choose := func(a, b, c, d int) []byte {
			return slices.Concat(blocks[0].at(a), blocks[1].at(b), blocks[2].at(c), blocks[3].at(d))
		}
		to := h.run(from, choose(3, 1, 4, 1), at) & h.mask
		var want []string
		for i := range 12 * 12 * 12 * 12 {
			text := choose(i/1728, i/144%12, i/12%12, i%12)
			if h.run(from, text, at)&h.mask == to {
				want = append(want, string(text))
			}
		}
		slices.Sort(want)
		p, err := tower.join(t.Context(), blocks, at, from, to, 1<<30)
		if err != nil || len(want) == 0 || !slices.Equal(texts(p), want) {
			t.Errorf("%s: %q, %v; want %q", h.name, texts(p), err, want)
		}
	}
}

// TestLandFinds hides a pair that fits among others that do not.
func TestLandFinds(t *testing.T) {
	for _, team := range teams {
		for _, between := range []string{"", "."} {
			tower := smallTower(team[:]...)
			front, back := &pool{width: storeyWidth}, &pool{width: storeyWidth}
			for range 40 {
				path := tower.path()
				front.text = append(front.text, path[:storeyWidth]...)
				back.text = append(back.text, path[storeyWidth:searched]...)
			}
			// The target is one of the names, in all bits or in the lower 28.
			want := string(front.at(17)) + between + string(back.at(23))
			tower.target = want + tower.suffix
			got, err := tower.land(t.Context(), front, back, []byte(between), len(want))
			if err != nil || string(got) != want {
				t.Errorf("%s %q: %q, %v; want %q", tower.hashes[2].name, between, got, err, want)
			}
			tower.target = "example.com"
			if got, err := tower.land(t.Context(), front, back, []byte(between), len(want)); err != nil || got != nil {
				t.Errorf("%s: %q, %v; want none", tower.hashes[2].name, got, err)
			}
		}
	}
}

func TestTowerStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	name, err := smallTower(teams[0][:]...).search(ctx)
	if name != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("%q, %v", name, err)
	}
}
