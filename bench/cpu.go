package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// processTable is a snapshot of the system's processes.
type processTable struct {
	children map[int][]int
	ended    map[int]time.Duration // CPU time of the children that a process has waited for
	system   map[int]time.Duration // of a process and these children, in the kernel
}

// usage is CPU time, and what of it was spent in the kernel.
type usage struct{ all, system time.Duration }

func (u usage) since(before usage) usage { return usage{u.all - before.all, u.system - before.system} }

// readProcesses reads /proc; without it the table is empty.
func readProcesses() processTable {
	t := processTable{map[int][]int{}, map[int]time.Duration{}, map[int]time.Duration{}}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it has ended
		}
		if s, ok := parseStat(string(stat)); ok {
			t.children[s.parent] = append(t.children[s.parent], pid)
			t.ended[pid], t.system[pid] = s.ended, s.system
		}
	}
	return t
}

// processStat is the parent of a process, the CPU time of its children that have
// ended, and what was spent in the kernel by them and the process.
type processStat struct {
	parent        int
	ended, system time.Duration
}

// parseStat parses /proc/PID/stat (proc(5): ppid, stime, cutime, cstime).
func parseStat(stat string) (s processStat, ok bool) {
	end := strings.LastIndexByte(stat, ')') // of the name, which may contain anything
	if end < 0 {
		return s, false
	}
	fields := strings.Fields(stat[end+1:])
	if len(fields) < 15 {
		return s, false
	}
	var numbers [4]int
	for i, field := range []int{1, 12, 13, 14} {
		n, err := strconv.Atoi(fields[field])
		if err != nil {
			return s, false
		}
		numbers[i] = n
	}
	const tick = time.Second / 100
	return processStat{numbers[0], time.Duration(numbers[2]+numbers[3]) * tick, time.Duration(numbers[1]+numbers[3]) * tick}, true
}

// cpu returns the CPU time of a process and all its descendants, including those
// that have ended.
func (t processTable) cpu(pid int) usage {
	sum := usage{clockOf(pid) + t.ended[pid], t.system[pid]}
	for _, child := range t.children[pid] {
		used := t.cpu(child)
		sum.all += used.all
		sum.system += used.system
	}
	return sum
}

// clockOf returns the CPU time of all threads of one process, to the nanosecond; 0
// if the system does not tell, or the process has ended.
func clockOf(pid int) time.Duration {
	const schedulerClock = 2 // CPUCLOCK_SCHED; clock_getcpuclockid(3) is this line
	var spent unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|schedulerClock), &spent); err != nil {
		return 0
	}
	return time.Duration(spent.Nano())
}

// peakMemory returns the largest resident memory of the process so far, in bytes; 0
// if the system does not tell (proc(5): VmHWM).
func (p *process) peakMemory() int64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			return kib << 10
		}
	}
	return 0
}
