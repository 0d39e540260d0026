package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"spamgate/internal/hashattack"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

// costReport is what "hashlab attack --all" prints as JSON.
type costReport struct {
	Target string            `json:"target"`
	Seed   uint64            `json:"seed"`
	Costs  []hashattack.Cost `json:"costs"`
}

// runCosts attacks every family and prints the table. What was done before an error
// is printed too.
func runCosts(ctx context.Context, target string, flags attackFlags, stdout, stderr io.Writer) error {
	if flags.path != "" {
		return errors.New("--out writes the names for the classic filter, --all a table: leave out one of them")
	}
	bar := term.NewProgress(stderr)
	costs, err := hashattack.Costs(ctx, target, hashattack.KeyedOptions{Keys: int(flags.keys.Value), Seed: flags.seed.Value, Progress: func(done, total int) {
		bar.Show(float64(done)/float64(total), "attacking every family")
	}})
	bar.Finish()
	if len(costs) == 0 && err != nil {
		return err
	}
	r := costReport{target, flags.seed.Value, costs}
	if flags.asJSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		return errors.Join(err, e.Encode(r))
	}
	return errors.Join(err, printCosts(stdout, r))
}

// printCosts prints the table for people.
func printCosts(out io.Writer, r costReport) error {
	var w bytes.Buffer
	paragraph(&w, "Making %s a false positive of a filter of 2^28 bits, by names in a list:", r.Target)
	t := &term.Table{Indent: "  "}
	for _, title := range []string{"family", "k", "search", "names", "tried", "seconds", "maybe"} {
		t.Columns = append(t.Columns, term.Column{Title: title})
	}
	guesses := 0.0
	for _, c := range r.Costs {
		names, tried, seconds, maybe := fmt.Sprint(c.Names), text.Number(c.Tried), fmt.Sprintf("%.1f", c.Seconds), "no"
		switch {
		case c.Secrets != nil:
			names, tried, seconds = "-", "-", "-"
			maybe = fmt.Sprintf("%s/%s", text.Number(c.Secrets.Maybes), text.Number(c.Secrets.Keys))
			guesses = c.Guesses
		case c.MayContain:
			maybe = "yes"
		}
		t.Add(c.Family, fmt.Sprint(c.K), c.Search, names, tried, seconds, maybe)
	}
	t.Write(&w, attackWidth)
	fmt.Fprintln(&w)
	paragraph(&w, "Tried are names; with a multicollision, states of hashes. Seconds are those of this machine. Maybe is the filter's answer for the target once the names are listed. A better attack than brute force may need less.")
	if guesses > 0 {
		paragraph(&w, "With a secret the names for a guessed one were listed under random ones. What is left is to send names blindly: of a filter with 10 million entries one of %s is a false positive, and the gate's replies do not tell which. (HighwayHash is made to keep its key; nobody has shown that XXH3 keeps its seed.)",
			text.Number(int(math.Round(guesses))))
	}
	_, err := out.Write(bytes.TrimSuffix(w.Bytes(), []byte("\n")))
	return err
}

// attackWidth is the width of the table.
const attackWidth = 80
