package hashattack

// pool is many texts of one length.
type pool struct {
	width int
	text  []byte
}

func (p *pool) size() int { return len(p.text) / p.width }

func (p *pool) at(i int) []byte { return p.text[i*p.width : (i+1)*p.width] }

// alphabet is the characters of the searched part of a name. Without the hyphen
// every text is valid anywhere in a label.
const alphabet = "0123456789abcdefghijklmnopqrstuvwxyz"

// words returns all texts of width characters of the alphabet.
func words(width int) *pool {
	n := 1
	for range width {
		n *= len(alphabet)
	}
	p := &pool{width: width, text: make([]byte, n*width)}
	for i := range n {
		word := p.at(i)
		for j, rest := width-1, i; j >= 0; j-- {
			word[j] = alphabet[rest%len(alphabet)]
			rest /= len(alphabet)
		}
	}
	return p
}
