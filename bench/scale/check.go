package main

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// asSender returns a sender that the entry matches.
func asSender(entry string) string {
	if strings.Contains(entry, "@") {
		return entry
	}
	return "x@" + entry
}

// questions is how many addresses check and postmap look up, of which one in
// listedShare is listed.
const (
	questions   = 2_000_000
	listedShare = 100
)

// writeQuestions writes the addresses for spamgate, and the keys for postmap. Since
// postmap looks up exact keys alone, its key for a listed domain is the domain.
func writeQuestions(dir string, seed, entries uint64) error {
	random := rand.New(rand.NewPCG(seed, 2))
	var files [2]*bufio.Writer
	for i, name := range []string{"addresses", "keys"} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		defer f.Close()
		files[i] = bufio.NewWriterSize(f, 1<<20)
	}
	for i := range questions {
		var address, key string
		if i%listedShare == 0 {
			key = string(generated(nil, seed, random.Uint64N(entries)))
			address = asSender(key)
		} else {
			address = fmt.Sprintf("anna.%d@mail.c%d.example", random.Uint32N(1e6), random.Uint32())
			key = address
		}
		fmt.Fprintln(files[0], address)
		fmt.Fprintln(files[1], key)
	}
	for _, f := range files {
		if err := f.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// makeTable makes Postfix's table of the list.
func makeTable(dir string, seed, entries uint64) error {
	table := filepath.Join(dir, "table")
	if err := writeList(table, seed, entries, " REJECT"); err != nil {
		return err
	}
	// The machine may have no configuration of Postfix.
	if err := os.WriteFile(filepath.Join(dir, "main.cf"), []byte("compatibility_level = 3.6\nlmdb_map_size = 4294967296\n"), 0o644); err != nil {
		return err
	}
	out, err := exec.Command("postmap", "-c", dir, "lmdb:"+table).CombinedOutput()
	if err != nil {
		return fmt.Errorf("postmap lmdb:%s: %w: %s", table, err, out)
	}
	return nil
}

// ask runs a program over a file of questions, and lowers best to the time it
// took. It is an error if the program does not print a line for each listed one.
func ask(best *time.Duration, dir, file string, program ...string) error {
	in, err := os.Open(filepath.Join(dir, file))
	if err != nil {
		return err
	}
	defer in.Close()
	cmd := exec.Command(program[0], program[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Stderr = dir, in, os.Stderr
	started := time.Now()
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != 1 { // the exit status of check if some are listed
		return fmt.Errorf("%s: %w", program[0], err)
	}
	*best = min(*best, time.Since(started))
	if lines := bytes.Count(out, []byte("\n")); lines != questions/listedShare {
		return fmt.Errorf("%s found %d of %d", program[0], lines, questions/listedShare)
	}
	return nil
}
