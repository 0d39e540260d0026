package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// asSender is a sender that the entry covers.
func asSender(entry string) string {
	if strings.Contains(entry, "@") {
		return entry
	}
	return "x@" + entry
}

// questions is how many addresses check and postmap are asked for, of which one
// in listedShare is listed.
const (
	questions   = 2_000_000
	listedShare = 100
)

// writeQuestions writes the addresses for spamgate, and the keys for postmap,
// which looks up nothing but what it is given: where the entry is a domain it is
// given the domain.
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
	// A configuration of its own: the machine's need not be there.
	if err := os.WriteFile(filepath.Join(dir, "main.cf"), []byte("compatibility_level = 3.6\nlmdb_map_size = 4294967296\n"), 0o644); err != nil {
		return err
	}
	out, err := exec.Command("postmap", "-c", dir, "lmdb:"+table).CombinedOutput()
	if err != nil {
		return fmt.Errorf("postmap lmdb:%s: %w: %s", table, err, out)
	}
	return nil
}

// ask runs a program over a file of questions and counts the lines it prints.
func ask(dir, questions string, program ...string) (lines int, took time.Duration, err error) {
	in, err := os.Open(filepath.Join(dir, questions))
	if err != nil {
		return 0, 0, err
	}
	defer in.Close()
	cmd := exec.Command(program[0], program[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Stderr = dir, in, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, 0, err
	}
	started := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	for found := bufio.NewScanner(out); found.Scan(); {
		lines++
	}
	if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() != 1 { // check: some are listed
		return 0, 0, fmt.Errorf("%s: %w", program[0], err)
	}
	return lines, time.Since(started), nil
}
