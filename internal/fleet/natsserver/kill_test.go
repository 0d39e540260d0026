package natsserver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// childVariable has the options of a server that runs in a process of its own.
const childVariable = "SPAMGATE_NATS_CHILD"

// childMain runs a server, if this process is to be one, until standard input ends.
func childMain() bool {
	text := os.Getenv(childVariable)
	if text == "" {
		return false
	}
	var o Options
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	s, err := Start(context.Background(), o)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	bufio.NewReader(os.Stdin).ReadByte()
	s.Close()
	return true
}

// child is a server in a process of its own.
type child struct {
	t   testing.TB
	o   Options
	cmd *exec.Cmd
}

func (c *child) start() {
	c.t.Helper()
	o := c.o
	o.Logger = nil
	text, err := json.Marshal(o)
	if err != nil {
		c.t.Fatal(err)
	}
	c.cmd = exec.Command(os.Args[0])
	c.cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	c.cmd.Stderr = os.Stderr
	if _, err := c.cmd.StdinPipe(); err != nil { // it ends with this process
		c.t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		c.t.Fatalf("%s: %q", c.o.Name, line)
	}
}

func (c *child) kill() {
	c.cmd.Process.Kill()
	c.cmd.Wait()
}

// TestKilled kills servers of three while a client writes: one of them, or all at once; sometimes
// the store of one is gone too. What was acknowledged is there at the end.
func TestKilled(t *testing.T) {
	t.Parallel()
	all := options(t, 3)
	children := make([]*child, len(all))
	for i, o := range all {
		children[i] = &child{t: t, o: o}
		children[i].start()
	}
	defer func() {
		for _, c := range children {
			c.kill()
		}
	}()
	nc := connect(t, nats.Token(token), all...)
	kv := bucket(t, nc, "b", 3)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var mu sync.Mutex
	acknowledged := map[string]string{}
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			key, value := fmt.Sprint("k", i%50), fmt.Sprint(i)
			brief, end := context.WithTimeout(ctx, time.Second)
			_, err := kv.Put(brief, key, []byte(value))
			end()
			mu.Lock()
			if err == nil {
				acknowledged[key] = value
			} else {
				delete(acknowledged, key) // it may be there, or come later
			}
			mu.Unlock()
		}
	})
	seen := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(acknowledged)
	}
	for i := range count("SPAMGATE_NATS_KILLS", 3) {
		mu.Lock()
		clear(acknowledged)
		mu.Unlock()
		eventually(t, "it takes writes", func() bool { return seen() > 10 })
		if i%3 == 2 {
			for _, c := range children {
				c.kill()
			}
			for _, c := range children {
				c.start()
			}
			continue
		}
		c := children[rand.IntN(len(children))]
		c.kill()
		if i%3 == 1 {
			if err := os.RemoveAll(c.o.Dir); err != nil {
				t.Fatal(err)
			}
		}
		c.start()
		eventually(t, "it takes writes again", func() bool { return put(kv, "again", strconv.Itoa(i)) == nil })
	}
	cancel()
	wg.Wait()
	for key, value := range acknowledged {
		eventually(t, key+" is "+value, func() bool { return get(kv, key) == value })
	}
}

// count returns how often a test does something.
func count(variable string, usual int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return usual
}
