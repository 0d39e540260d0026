package blocklist

import (
	"fmt"
	"time"

	"spamgate/blocklist/listfile"
)

// ListStats describes one list as it serves now.
type ListStats struct {
	Name                 string
	Type                 ListType
	Action, HeaderAction Action // zero HeaderAction: the same as Action
	Stages               Stage

	// Entries counts the valid entries, exceptions and duplicates included;
	// Exceptions and Duplicates those that are such. Invalid counts the lines
	// that are no entry and no comment.
	Entries, Exceptions, Duplicates, Invalid int

	// Files are the files that the entries came from.
	Files []FileStats

	// Problems describes the first invalid lines of each file, up to
	// [MaxProblems].
	Problems []FileProblem

	// Bytes is the memory that the index takes.
	Bytes int

	// Loaded is when the version that serves was read; zero if there is none.
	Loaded time.Time

	// Err says why what is on disk does not serve; nil if it does. LastGood
	// says that an earlier version serves instead.
	Err      error
	LastGood bool
}

// FileStats describes one file of a list as it was read.
type FileStats struct {
	Path             string
	Size             int64 // bytes
	Modified         time.Time
	Entries, Invalid int
}

// MaxProblems is how many invalid lines of a file are described.
const MaxProblems = 10

// FileProblem is an invalid line of a file.
type FileProblem struct {
	File string
	listfile.Problem
}

// SetStats describes a Set.
type SetStats struct {
	Generation uint64
	Lists      []ListStats // in the order of the configuration

	// Entries and Invalid are the lists' sums.
	Entries, Invalid int

	// Kind, Family, Bits and Hashes describe the filter: its structure, its hash
	// family, m and k.
	Kind   Kind
	Family string
	Bits   uint64
	Hashes int

	// FillRatio is the part of the filter's bits that is set, FPR the
	// probability of a false positive for one key that follows from it (see
	// [bloom.Filter.ExpectedFPR]), and EstimatedEntries the
	// number of keys that it suggests.
	FillRatio, FPR, EstimatedEntries float64

	// Capacity is how many keys the filter is meant for. A sized or counting
	// filter is made anew before it has more.
	Capacity float64

	// FilterBytes is the memory that the filter takes.
	FilterBytes uint64

	// Warning says in words that there are more; else it is empty.
	Warning string
}

// Stats describes the Set. The slices in it are shared: do not change them.
func (s *Set) Stats() SetStats {
	stats := s.stats
	stats.Generation = s.generation
	return stats
}

func (s *Set) describe(readings []reading) SetStats {
	f := s.filter
	stats := SetStats{
		Kind:             s.layout.Kind,
		Family:           f.Family().Name(),
		Bits:             f.M(),
		Hashes:           f.K(),
		FillRatio:        f.FillRatio(),
		FPR:              f.ExpectedFPR(),
		EstimatedEntries: f.EstimatedEntries(),
		Capacity:         float64(s.room),
		FilterBytes:      s.filterBytes(),
	}
	keys := 0
	for i := range s.lists {
		l := describeList(&s.lists[i].List, readings[i])
		stats.Lists = append(stats.Lists, l)
		stats.Entries += l.Entries
		stats.Invalid += l.Invalid
		keys += l.Entries - l.Duplicates
	}
	if float64(keys) > stats.Capacity {
		stats.Warning = fmt.Sprintf("%d keys exceed the filter's capacity of %.0f: about one lookup in %.0f costs a needless confirmation; the filter kind %q grows with its lists",
			keys, stats.Capacity, 1/f.ExpectedFPR(), KindSized)
	}
	return stats
}

func describeList(l *List, r reading) ListStats {
	v := r.version()
	return ListStats{
		Name: l.Name, Type: l.Type, Action: l.Action, HeaderAction: l.HeaderAction, Stages: l.Stages,
		Entries: v.entries, Exceptions: v.exceptions, Duplicates: v.duplicates, Invalid: v.invalid,
		Files:    v.files,
		Problems: v.problems,
		Bytes:    v.index.size(),
		Loaded:   v.loaded,
		Err:      r.err,
		LastGood: r.err != nil && r.good != nil,
	}
}
