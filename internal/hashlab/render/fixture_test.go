package render

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"spamgate/internal/hashlab"
	"spamgate/internal/hashlab/summary"
)

// fixture returns a small made-up report with some of everything, for the tests of
// the renderers. Its numbers only resemble measured ones.
func fixture() *hashlab.Report {
	r := &hashlab.Report{Manifest: hashlab.Manifest{
		Version: "0.0.0-test", Go: "go1.0", OS: "linux/amd64", CPU: "A Processor", ClockGHz: 2.5,
		Flags: []string{"--seed=7", "--family=classic", "--family=weighted"}, Seed: 7,
		PublicKey: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
		Corpora: []hashlab.CorpusInfo{
			{Name: "real", What: "domains of a shipped list", Keys: 121570, Bytes: 1823550, SHA256: strings.Repeat("0a", 32)},
			{Name: "<script>&\x1b[31m, a file.txt", What: "lines of a file", Keys: 5000, Bytes: 55000, SHA256: strings.Repeat("b1", 32)},
		},
	}}
	random := rand.New(rand.NewPCG(1, 2))
	for c, corpus := range r.Manifest.Corpora {
		for _, n := range []int{2000, 4000, 8000} {
			r.FPR = append(r.FPR,
				fixtureFPR(corpus.Name, "classic", hashlab.KindFamily, 11, n, 9-float64(c)/4),
				fixtureFPR(corpus.Name, "ideal", hashlab.KindControl, 11, n, 11),
				fixtureFPR(corpus.Name, "xxh3", hashlab.KindControl, 11, n, 11),
				fixtureFPR(corpus.Name, "weighted", hashlab.KindFamily, 7, n, 7),
				fixtureFPR(corpus.Name, "ideal", hashlab.KindControl, 7, n, 7),
				fixtureFPR(corpus.Name, "xxh3", hashlab.KindControl, 7, n, 7),
			)
		}
		for _, s := range []hashlab.Subject{subject("classic", hashlab.KindFamily), subject("weighted", hashlab.KindFamily), subject("ideal", hashlab.KindControl), subject("xxh3", hashlab.KindControl)} {
			r.Messages = append(r.Messages, hashlab.MessageRow{Corpus: corpus.Name, Subject: s, M: 1 << 17, K: 11, N: 8000, Filters: 20,
				Hits: 812, Messages: 40000, KeysAMail: 6.2, Rate: limits(0.0203, 0.019, 0.0216), FromPerKey: 0.0209})
		}
		fixtureHashes(r, corpus, random)
	}
	for i, s := range []hashlab.Subject{subject("classic", hashlab.KindFamily), subject("weighted", hashlab.KindFamily), subject("ideal", hashlab.KindControl), subject("xxh3", hashlab.KindControl), subject("PJW", hashlab.KindHash)} {
		what, k := hashlab.AllIndices, 11
		if s.Kind == hashlab.KindHash {
			what, k = "one hash", 1
		}
		for _, n := range []int{8, 33} {
			ns := rounded(0.7 * float64((i+1)*n))
			r.Speed = append(r.Speed, hashlab.SpeedRow{Subject: s, What: what, K: k, KeyBytes: n, Runs: 11, NsMedian: ns, NsLeast: rounded(ns * 0.9), NsMost: rounded(ns * 1.3), BytesPerCycle: rounded(float64(n) / ns / 2.5)})
		}
	}
	r.Equivalence = hashlab.Equivalences(r.FPR)
	for i := range r.Equivalence {
		e := &r.Equivalence[i]
		e.Expected, e.PEquivalent, e.PDiffers, e.Worst = rounded(e.Expected), rounded(e.PEquivalent), rounded(e.PDiffers), rounded(e.Worst)
		e.Ratio = limits(rounded(e.Ratio.Value), rounded(e.Ratio.Low), rounded(e.Ratio.High))
	}
	r.Summary = summary.Of(r)
	return r
}

func limits(value, low, high float64) hashlab.Interval {
	return hashlab.Interval{Value: value, Low: low, High: high}
}

func subject(name, kind string) hashlab.Subject { return hashlab.Subject{Name: name, Kind: kind} }

// zeroHits returns a report of one row without a hit, with the laboratory's numbers.
func zeroHits() *hashlab.Report {
	return &hashlab.Report{FPR: []hashlab.FPRRow{{
		Corpus: "c", Subject: subject("f", hashlab.KindFamily), M: 1024, K: 3, N: 10, Filters: 20, Trials: 100,
		Rate: limits(0, 0, 0.029513049607039932), Fill: 0.09765625, ExpectedFill: 0.028871881992738362, Formula: 2.4067184202190514e-05, ByFill: 0.0009313225746154785,
		EffectiveK: limits(inf, 1.5143877836771582, inf),
	}}}
}

// fixtureFPR returns a row of a family that acts like so many effective functions.
func fixtureFPR(corpus, name, kind string, k, n int, effective float64) hashlab.FPRRow {
	const m, trials = 1 << 17, 40_000_000
	fill := -math.Expm1(-effective * float64(n) / m)
	rate := math.Pow(fill, effective)
	expected := -math.Expm1(-float64(k) * float64(n) / m)
	f := hashlab.FPRRow{Corpus: corpus, Subject: subject(name, kind), M: m, K: k, N: n, Load: rounded(float64(k*n) / m / math.Ln2), Filters: 20, Hits: uint64(rate * trials), Trials: trials,
		Rate: limits(rounded(rate), rounded(rate*0.95), rounded(rate*1.05)), Fill: rounded(fill), ExpectedFill: rounded(expected),
		Formula: rounded(math.Pow(expected, float64(k))), ByFill: rounded(math.Pow(fill, float64(k))),
		EffectiveK: limits(effective, effective-0.1, effective+0.1)}
	if f.Hits == 0 {
		f.Rate = limits(0, 0, 3.7/trials)
		f.EffectiveK = limits(math.Inf(1), rounded(math.Log(3.7/trials)/math.Log(fill)), math.Inf(1))
	}
	return f
}

// rounded returns x with six digits: the golden files must not depend on how a
// processor rounds.
func rounded(x float64) float64 {
	x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'g', 6, 64), 64) // what was just written
	return x
}

// fixtureHashes adds what is measured of single hashes and functions.
func fixtureHashes(r *hashlab.Report, corpus hashlab.CorpusInfo, random *rand.Rand) {
	names := []string{"RS", "PJW", "ELF", "BP"}
	passes := []float64{0.49, 0.5, 0.5, 0.97}
	same := make([][]float64, len(names))
	kappa := make([][]float64, len(names))
	for i, name := range names {
		r.PassRates = append(r.PassRates, hashlab.PassRow{Corpus: corpus.Name, Family: "classic", Hash: name, M: 1 << 17, K: 11, N: 8000, Filters: 20, Hits: uint64(passes[i] * 1e5), Trials: 1e5, Rate: limits(passes[i], passes[i]-0.01, passes[i]+0.01), Fill: 0.49})
		same[i], kappa[i] = make([]float64, len(names)), make([]float64, len(names))
		for j := range names {
			if i == j || i+j == 3 && i*j == 2 { // PJW and ELF
				same[i][j], kappa[i][j] = 1, 1
			} else {
				kappa[i][j] = 0.01 * float64(i+j)
			}
		}
	}
	r.Agreement = append(r.Agreement, hashlab.Agreement{Corpus: corpus.Name, Family: "classic", M: 1 << 17, N: 8000, Fill: 0.49, Keys: 4000, Names: names, Same: same, Kappa: kappa})
	for _, s := range []hashlab.Subject{subject("PJW", hashlab.KindHash), subject("BP", hashlab.KindHash), subject("ideal", hashlab.KindControl), subject("xxh3", hashlab.KindControl)} {
		r.PassRates = append(r.PassRates, hashlab.PassRow{Corpus: corpus.Name, Family: "weighted", Hash: s.Name, M: 1 << 17, K: 7, N: 8000, Filters: 20, Hits: 5e4, Trials: 1e5, Rate: limits(0.5, 0.49, 0.51), Fill: 0.5})
		collision := hashlab.Collision{Corpus: corpus.Name, Subject: s, Bits: 28, Keys: corpus.Keys, Distinct: corpus.Keys - 27, Collisions: 27, Expected: 27.5}
		test := hashlab.Uniformity{Corpus: corpus.Name, Subject: s, Part: "low", Buckets: 1024, Keys: corpus.Keys, ChiSquare: 1031.5, DF: 1023, P: 0.42, PHolm: 1, PEven: 1, Effect: 0.09, ExcessEffect: 0.01}
		flips := hashlab.Avalanche{Corpus: corpus.Name, Subject: s, KeyBytes: 2, Keys: 1000, Noise: 0.025, Flips: make([][]float64, 16)}
		bias := 0.02
		if s.Kind == hashlab.KindHash {
			collision.Distinct, collision.Collisions = 1200, corpus.Keys-1200
			test.ChiSquare, test.P, test.PHolm, test.Effect, test.ExcessEffect = 987654, 0, 0, 2.5, 2.4
			bias = 0.6
			flips.Never = 0.25
		}
		flips.MeanBias, flips.WorstBias, flips.WorstIn, flips.WorstOut, flips.WorstP = bias, min(1, 3*bias), 5, 31, 0.4
		flips.BICMean, flips.BICWorst, flips.BICIn, flips.BICOut1, flips.BICOut2, flips.BICP, flips.BICTested = bias, min(1, 4*bias), 9, 3, 7, 0.3, 1
		if s.Kind == hashlab.KindHash {
			flips.WorstP, flips.BICP, flips.BICTested = 0, 0, 0.75
		}
		if s.Name == "BP" {
			flips.BICMean, flips.BICWorst, flips.BICP, flips.BICTested = 0, 0, 1, 0
		}
		for i := range flips.Flips {
			for range 32 {
				flips.Flips[i] = append(flips.Flips[i], math.Round(1000*(0.5+bias*(random.Float64()-0.5)))/1000)
			}
		}
		r.Collisions = append(r.Collisions, collision)
		r.Uniformity = append(r.Uniformity, test)
		r.Avalanche = append(r.Avalanche, flips)
	}
}
