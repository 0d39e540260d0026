package hashlab

import "iter"

// Report is the result of one run. The same manifest gives the same numbers, but
// for Speed.
type Report struct {
	Manifest    Manifest      `json:"manifest"`
	Interrupted bool          `json:"interrupted"` // the run ended before everything was measured
	Summary     []Finding     `json:"summary"`     // from package summary; Run leaves it empty
	FPR         []FPRRow      `json:"fpr"`
	Equivalence []Equivalence `json:"equivalence"`
	Messages    []MessageRow  `json:"messages"`
	PassRates   []PassRow     `json:"pass_rates"`
	Collisions  []Collision   `json:"collisions"`
	Uniformity  []Uniformity  `json:"uniformity"`
	Avalanche   []Avalanche   `json:"avalanche"`
	Agreement   []Agreement   `json:"agreement"`
	Speed       []SpeedRow    `json:"speed"`
}

// Manifest is everything that a run depends on.
type Manifest struct {
	Version   string       `json:"version"` // of spamgate
	Go        string       `json:"go"`
	OS        string       `json:"os"` // with the architecture: "linux/amd64"
	CPU       string       `json:"cpu"`
	ClockGHz  float64      `json:"clock_ghz"` // measured, for bytes a cycle
	Flags     []string     `json:"flags"`     // as given, "--seed=1"
	Seed      uint64       `json:"seed"`
	Full      bool         `json:"full"`
	PublicKey string       `json:"public_key"` // the laboratory's fixed key of keyed families, in hex
	Corpora   []CorpusInfo `json:"corpora"`
}

// CorpusInfo describes a corpus. SHA256 is of its keys, each ended by a line feed.
type CorpusInfo struct {
	Name   string `json:"name"`
	What   string `json:"what"` // in a few words
	Keys   int    `json:"keys"` // number of different keys
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`

	Duplicates int `json:"duplicates"` // dropped duplicate keys
	Invalid    int `json:"invalid"`    // lines that are not entries of a list
}

// Kinds of subjects.
const (
	KindFamily  = "family"
	KindHash    = "hash"    // a single hash: one of the eleven, or the hash of a family
	KindControl = "control" // ideal, xxh3
)

// Subject names what a row measures.
type Subject struct {
	Name string `json:"name"` // "classic", "RS", "ideal"
	Kind string `json:"kind"`
}

// Label returns the subject's name for people.
func (s Subject) Label() string {
	if s.Kind == KindHash {
		return HashLabel(s.Name)
	}
	return s.Name
}

// HashLabel returns the name of a single hash for people. The classic FNV is not FNV-1:
// it starts from 0 and multiplies by FNV-1's offset basis, and its numbers should not be
// cited as those of FNV-1.
func HashLabel(name string) string {
	if name == "FNV" {
		return "FNV (basis as prime)"
	}
	return name
}

// FamilyKind returns the kind of a family by its name.
func FamilyKind(name string) string {
	if name == Ideal || name == XXH3 {
		return KindControl
	}
	return KindFamily
}

// Interval is a value between its limits of 95% confidence: Low ≤ Value ≤ High.
// An unknown number is +Inf, which is null in JSON and empty in CSV.
type Interval struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// FPRRow is a false positive rate, of filters with random keys of a corpus, for
// other keys of it.
type FPRRow struct {
	Corpus string `json:"corpus"`
	Subject
	M       uint64  `json:"m"`
	K       int     `json:"k"`
	N       int     `json:"n"`       // keys in each filter
	Load    float64 `json:"load"`    // N as a part of the capacity, m·ln 2/k keys
	Filters int     `json:"filters"` // number of random filters, at least 20
	Hits    uint64  `json:"hits"`    // false positives in all filters
	Trials  uint64  `json:"trials"`  // lookups of absent keys in all filters

	// Rate is Hits/Trials. Each limit comes from the spread between the filters
	// and between the keys (Student's t, of the logarithm) or from the binomial
	// noise (Clopper-Pearson), whichever is wider; the package comment has the
	// formula. Without hits Value and Low are 0 and High is the upper bound.
	Rate Interval `json:"rate"`

	Fill         float64  `json:"fill"`          // mean part of bits set
	ExpectedFill float64  `json:"expected_fill"` // 1 - e^(-kn/m)
	Formula      float64  `json:"formula"`       // (1 - e^(-kn/m))^k
	ByFill       float64  `json:"by_fill"`       // Fill^K
	EffectiveK   Interval `json:"effective_k"`   // ln Rate / ln Fill, at least 0; without hits only Low is known
	FullSize     bool     `json:"full_size"`     // a row of the full run near the capacity of 2^28 bits
}

// Equivalence compares a subject's rates with the formula's, see [Equivalences].
type Equivalence struct {
	Corpus string `json:"corpus"` // empty: all corpora together
	Subject
	K           int      `json:"k"`
	Hits        uint64   `json:"hits"`         // of the fullest filters of each size
	Expected    float64  `json:"expected"`     // hits that the formula predicts in them
	Ratio       Interval `json:"ratio"`        // Hits/Expected; its limits are those of 90% confidence
	PEquivalent float64  `json:"p_equivalent"` // of two one-sided tests: below 0.05 the interval is inside of the margin
	Worst       float64  `json:"worst"`        // the ratio of the filters, emptier ones too, that differ most significantly
	PDiffers    float64  `json:"p_differs"`    // of that difference, corrected for all filters and rows (Bonferroni, Holm)
	Verdict     string   `json:"verdict"`      // "equivalent", "differs", "open"
}

// MessageRow is the rate at which at least one of a message's candidate keys (of
// all its identities) is a false positive.
type MessageRow struct {
	Corpus string `json:"corpus"`
	Subject
	M          uint64   `json:"m"`
	K          int      `json:"k"`
	N          int      `json:"n"` // the capacity
	Filters    int      `json:"filters"`
	Hits       uint64   `json:"hits"`
	Messages   uint64   `json:"messages"`       // lookups in all filters, of messages of which no key is a member
	KeysAMail  float64  `json:"keys_a_message"` // mean number of different candidate keys
	Rate       Interval `json:"rate"`           // limits as in FPRRow, with messages instead of keys
	FromPerKey float64  `json:"from_per_key"`   // 1-(1-r)^keys with the rate per key in these filters
}

// PassRow is the part of absent keys whose bit by one index function is set in a
// family's filter: the fill ratio, if the function spreads keys evenly.
type PassRow struct {
	Corpus  string   `json:"corpus"`
	Family  string   `json:"family"`
	Hash    string   `json:"hash"` // the function's name, or its number from 0
	M       uint64   `json:"m"`
	K       int      `json:"k"`
	N       int      `json:"n"` // the capacity
	Filters int      `json:"filters"`
	Hits    uint64   `json:"hits"`
	Trials  uint64   `json:"trials"`
	Rate    Interval `json:"rate"` // limits as in FPRRow
	Fill    float64  `json:"fill"`
}

// Collision counts a hash's distinct values modulo 2^Bits over a corpus.
type Collision struct {
	Corpus string `json:"corpus"`
	Subject
	Bits       int     `json:"bits"`
	Keys       int     `json:"keys"`
	Distinct   int     `json:"distinct"`
	Collisions int     `json:"collisions"` // keys - distinct
	Expected   float64 `json:"expected"`   // collisions of an ideal hash
}

// Uniformity is a chi-square test of the lowest or highest bits of a hash.
type Uniformity struct {
	Corpus string `json:"corpus"`
	Subject
	Part      string  `json:"part"`    // "low" or "high"
	Buckets   int     `json:"buckets"` // a power of two, at least 5 keys expected in each
	Keys      int     `json:"keys"`
	ChiSquare float64 `json:"chi_square"`
	DF        int     `json:"df"`
	P         float64 `json:"p"`      // of this test alone
	PHolm     float64 `json:"p_holm"` // corrected for all tests of the run
	Effect    float64 `json:"effect"` // Cohen's w: √(χ²/keys)

	// ExcessEffect is Effect without the effect of chance, √(max(0, χ²-df)/keys):
	// near 0 for an ideal hash, whose Effect is near √(df/keys).
	ExcessEffect float64 `json:"excess_effect"`

	// PEven is the probability of counts as even as these or more so, corrected
	// like PHolm. It is small if a hash spreads keys more evenly than chance does,
	// as linear hashes spread sequential numbers; then P is near 1.
	PEven float64 `json:"p_even"`
}

// Avalanche is how often each output bit flips when an input bit does: 1/2 for a
// good hash. It also tells whether two output bits flip independently of each other,
// the bit independence criterion (BIC).
type Avalanche struct {
	Corpus string `json:"corpus"`
	Subject
	KeyBytes  int         `json:"key_bytes"` // keys are cut to this length
	Keys      int         `json:"keys"`      // number of different keys after the cut
	Flips     [][]float64 `json:"flips"`     // [input bit][output bit], in thousandths; input bit 8·byte+bit, lowest first, bytes from the beginning of the key
	MeanBias  float64     `json:"mean_bias"` // mean of |2p-1| over all cells
	WorstBias float64     `json:"worst_bias"`
	WorstIn   int         `json:"worst_in"`  // the input bit of the worst cell
	WorstOut  int         `json:"worst_out"` // its output bit
	WorstP    float64     `json:"worst_p"`   // chance of so bad a cell among all cells (Bonferroni) of all rows of the run (Holm)
	Noise     float64     `json:"noise"`     // mean bias by chance with so many keys: √(2/(π·keys))
	Never     float64     `json:"never"`     // part of the cells that never flip

	// BICMean and BICWorst are the mean and the largest |correlation| of two output
	// bits' flips when an input bit flips, over all input bits and pairs that can be
	// tested: 0 is ideal, 1 is one bit twice. Chance gives a mean of Noise.
	BICMean   float64 `json:"bic_mean"`
	BICWorst  float64 `json:"bic_worst"`
	BICIn     int     `json:"bic_in"`    // the input bit of the worst
	BICOut1   int     `json:"bic_out_1"` // its two output bits
	BICOut2   int     `json:"bic_out_2"`
	BICP      float64 `json:"bic_p"`      // chance of so bad a pair, corrected like WorstP
	BICTested float64 `json:"bic_tested"` // part of the input bits and pairs that can be tested; bits that hardly ever or nearly always flip have no correlation
}

// Agreement tells for each two functions of a family how often both give the same
// answer "bit set" or "bit clear" for absent keys, corrected for chance: Cohen's
// kappa, which is 1 for one function under two names, 0 for independent ones.
type Agreement struct {
	Corpus string      `json:"corpus"`
	Family string      `json:"family"`
	M      uint64      `json:"m"`
	N      int         `json:"n"`    // keys added, until the filter was half full or had half of the corpus
	Fill   float64     `json:"fill"` // part of bits set
	Keys   int         `json:"keys"` // absent keys: by chance kappa deviates by about 1/√Keys
	Names  []string    `json:"names"`
	Same   [][]float64 `json:"same"` // part of the keys with the same index
	Kappa  [][]float64 `json:"kappa"`
}

// Pairs returns the numbers of each two functions, the lower one first.
func (a Agreement) Pairs() iter.Seq2[int, int] {
	return func(yield func(i, j int) bool) {
		for i := range a.Names {
			for j := i + 1; j < len(a.Names); j++ {
				if !yield(i, j) {
					return
				}
			}
		}
	}
}

// SpeedRow is the time to hash a key.
type SpeedRow struct {
	Subject
	What          string  `json:"what"` // "one hash", "all k indices", "plain loops" (the same, one hash after another), "batch" (many keys at once)
	K             int     `json:"k"`    // number of values of each key, 1 for one hash
	KeyBytes      int     `json:"key_bytes"`
	Runs          int     `json:"runs"` // at least 10
	NsMedian      float64 `json:"ns_median"`
	NsLeast       float64 `json:"ns_least"`
	NsMost        float64 `json:"ns_most"`
	BytesPerCycle float64 `json:"bytes_per_cycle"`
}

// Finding is one sentence of the summary.
type Finding struct {
	Name  string `json:"name"`  // for programs: "pjw-is-elf", "bp-collapse", "expect-fpr"
	Holds bool   `json:"holds"` // the numbers of this run confirm the sentence
	Text  string `json:"text"`
}
