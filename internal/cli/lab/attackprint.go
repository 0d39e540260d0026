package lab

import (
	"bytes"
	"fmt"
	"io"
	"math"

	"spamgate/blocklist/bloom"
	"spamgate/internal/hashattack"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

// printAttack prints a report for people.
func printAttack(out io.Writer, r attackReport) error {
	var w bytes.Buffer
	target := r.Target
	paragraph(&w, "To look up %s, the classic filter asks for %d of its 2^28 bits: one for each of the eleven hashes, of which PJW and ELF are the same.",
		target, len(r.Bits))
	if len(r.Names) == 0 {
		paragraph(&w, "No name was found.")
	} else {
		paragraph(&w, "Names that set these bits, as lines of a list file; above each the hashes whose bits it sets:")
		w.WriteString(r.List() + "\n")
		printAttackClassic(&w, r.Result)
	}
	if r.Keyed != nil {
		printAttackKeyed(&w, r.Target, r.Keyed)
	}
	_, err := out.Write(bytes.TrimSuffix(w.Bytes(), []byte("\n")))
	return err
}

// printAttackClassic says what the names do to the unkeyed filter.
func printAttackClassic(w io.Writer, r *hashattack.Result) {
	if !r.MayContain {
		paragraph(w, "They are not all: with %s listed, the filter still knows that %s is not.", text.Count(len(r.Names), "name", "names"), r.Target)
		return
	}
	paragraph(w, "CLASSIC FILTER. With these %s listed and nothing else, %d of %d bits are set, and the filter says maybe to %s, which is not listed: a false positive made to order.",
		text.Count(len(r.Names), "name", "names"), r.SetBits, bloom.ClassicBits, r.Target)
	paragraph(w, "The gate accepts mail from %s all the same: the exact index holds no such entry, and the mistake is only counted. With [filter] confirm = false it would be refused.", r.Target)
}

// printAttackKeyed prints what is left of the attack if the hashes have a key.
func printAttackKeyed(w io.Writer, target string, k *hashattack.Keyed) {
	paragraph(w, "KEYED FILTER (double: HighwayHash-128 under a secret key, %d indices in as many bits). Here the attacker cannot know which bits %s asks for. %s tried:",
		k.K, target, text.Count(k.Same.Keys, "random key", "random keys"))
	fmt.Fprintf(w, "  %-32s %15s  %s\n", "listed", "target's bits", "keys under which the")
	fmt.Fprintf(w, "  %-32s %15s  %s\n", "", "set, a key", "target is a maybe")
	row := func(what string, t hashattack.Trial) {
		fmt.Fprintf(w, "  %-32s %9.3g of %2d  %d (at 95%%: below %.2g%%)\n",
			what, float64(t.Bits)/float64(t.Keys), k.K, t.Maybes, 100*t.Upper)
	}
	row("the "+text.Count(k.Same.Names, "name", "names")+" above", k.Same)
	row(text.Count(k.Guessed.Names, "name", "names")+" for a guessed key", k.Guessed)
	fmt.Fprintln(w)
	success := "do not make the target a maybe yet"
	if k.Guess.MayContain {
		success = "do make the target a maybe"
	}
	paragraph(w, "Under the guessed key itself those %s %s; brute force found them among %d. The attacker cannot tell that the gate's key is another: the search cannot even know when it has succeeded.",
		text.Count(len(k.Guess.Names), "name", "names"), success, k.Guess.Examined)
	paragraph(w, "By arithmetic: the names above hold all %d bits with a chance of about 1 in 10^%.0f. For even odds %.1f%% of all bits must be set, which takes %.0f million names chosen blindly.",
		k.K, math.Floor(-k.Log10Chance), 100*k.HalfFill, k.HalfNames/1e6)
}

// paragraph prints wrapped text and an empty line.
func paragraph(w io.Writer, format string, args ...any) {
	term.PrintWrapped(w, "", fmt.Sprintf(format, args...))
	fmt.Fprintln(w)
}
