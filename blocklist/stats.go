package blocklist

import (
	"fmt"
	"strings"
	"time"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/verdict"
)

// ListStats describes one list as it serves now.
type ListStats struct {
	Name                 string
	Type                 ListType
	Action, HeaderAction verdict.Action // zero HeaderAction: the same as Action
	Stages               verdict.Stage
	PerRecipient         bool
	ProvenBy             verdict.Proofs

	// URL is where the list's file was fetched from; empty for one that was not. Zone is
	// that of a list in DNS, which has no entries here; empty for others.
	URL, Zone string

	// Format is how the first file was read, and Packed "gzip" or "zstd" if it was
	// packed. See Files for the others.
	Format listfile.Format
	Packed string

	// Entries counts the valid entries, including Exceptions and Duplicates. Invalid
	// counts the lines that are neither an entry nor a comment, Unsupported those
	// that mean something which cannot be looked up here.
	Entries, Exceptions, Duplicates, Invalid, Unsupported int

	// Expired counts the entries that were left out because they had expired when
	// the list was read, Protected those that cover a protected name or names below
	// it, and Disallowed those that a list from a URL may not have: <> and name@.
	// NextExpiry is when the next entry expires; zero if none does. The list is read
	// again then, a long one after a pause.
	Expired, Protected, Disallowed int
	NextExpiry                     time.Time

	// Skipped counts the lines that are not about senders, see [listfile.Result].
	Skipped int

	// Notes says what in the files was ignored on purpose, and what should be
	// checked.
	Notes []string

	// Files are the files that the entries came from.
	Files []FileStats

	// Problems describes the first lines of each file that were left out, up to
	// [MaxProblems] of each sort: invalid, unsupported, protected, disallowed.
	Problems []FileProblem

	// FillRatio and FPR are those of the filter if it held this list alone, computed
	// as [SetStats.ComputedFPR] is.
	FillRatio, FPR float64

	// Bytes is what the index takes: on disk, where it is mapped from, or in
	// memory.
	Bytes int64

	// Loaded is when the version that serves was read; zero if there is none.
	Loaded time.Time

	// Sum is the sum of the content of what serves; empty if nothing does.
	Sum string

	// Err says why what is on disk does not serve; nil if it does. LastGood
	// says that an earlier version serves instead. Since is when that began.
	Err      error
	LastGood bool
	Since    time.Time

	// Held says that Err is because what is on disk looks wrong. HeldSum is the sum
	// of its content if it may be accepted; else it is empty.
	Held    bool
	HeldSum string

	// Pinned says that the list is pinned: nil if it is not. Err is that while its files
	// have another version.
	Pinned *Pin

	// Retry says that processes were killed while they read the list. Accepting what
	// is held makes the next one try again.
	Retry bool
}

// LeftOut returns how many lines of the list are not looked up although their time is not over.
func (l *ListStats) LeftOut() int { return l.Invalid + l.Unsupported + l.Protected + l.Disallowed }

// ListsNobody returns why the list lists nobody although its files have lines: all of them
// are left out, or exceptions to nothing. It is empty if somebody is listed, and if nobody is
// on purpose: files that are empty or have only comments, such as those of a new list, and
// entries whose time is over.
func (l *ListStats) ListsNobody() string {
	if l.Entries > l.Exceptions || l.Expired > 0 || l.Exceptions+l.LeftOut()+l.Skipped == 0 {
		return ""
	}
	var lines []string
	for _, kind := range []struct {
		n    int
		what string
	}{{l.LeftOut(), "lines left out"}, {l.Exceptions, "exceptions"}, {l.Skipped, "lines not about senders"}} {
		if kind.n > 0 {
			lines = append(lines, fmt.Sprintf("%s: %d", kind.what, kind.n))
		}
	}
	return "it lists nobody (" + strings.Join(lines, ", ") + "); check whether its format is right"
}

// Pin says that a list serves one version, whatever its files hold.
type Pin struct {
	Sum     string    `json:"sha256"` // of the version: see [ListStats.Sum]
	Entries int       `json:"entries"`
	Since   time.Time `json:"since"`
	Who     string    `json:"who,omitempty"`
	Why     string    `json:"why,omitempty"`
}

// FileStats describes one file of a list as it was read.
type FileStats struct {
	Path             string
	Size             int64 // bytes
	Modified         time.Time
	Entries, Invalid int

	Unsupported, Expired, Protected, Disallowed, Skipped int

	// How it was read, see [listfile.Result].
	Format listfile.Format
	Packed string
	Notes  []string
}

// MaxProblems is how many lines of a file are described, of each sort.
const MaxProblems = 10

// FileProblem is a line of a file that was left out: an invalid one, an
// unsupported one, an entry that covers a protected name, or one that a list from
// a URL may not have.
type FileProblem struct {
	File string
	listfile.Problem
	Protected, Disallowed bool
}

// SetStats describes a Set.
type SetStats struct {
	Generation uint64
	Lists      []ListStats // in the order of the configuration

	// Entries and Invalid are the lists' sums.
	Entries, Invalid int

	// Kind, Family, Bits and Hashes describe the filter: its structure, its hash
	// family, m and k. A fuse filter has no family but its own, called "fuse".
	Kind   Kind
	Family string
	Bits   uint64
	Hashes int

	// Shards is how many bitmaps or fuse filters it consists of.
	Shards int

	// Keys is the number of keys in the filter: one for each entry, and one for each
	// different recipient's side of a list's entries. A key of several lists counts
	// once for each.
	Keys uint64

	// FillRatio is the part of the filter's bits that is set (0 for fuse), and
	// EstimatedEntries the number of different keys that it suggests.
	FillRatio, EstimatedEntries float64

	// ComputedFPR is the probability of a false positive for one key that follows
	// from the fill ratio and the number of keys (see [bloom.Filter.ExpectedFPR]). It
	// is not a number (NaN) if it cannot be computed.
	ComputedFPR float64

	// Similar is what [Set.Probe] has measured with changed entries; nil before.
	// Unprobed says that the filter needs this, and that FPR is only ComputedFPR.
	Similar  []Similar
	Unprobed bool

	// FPR is the rate to expect: the larger of ComputedFPR and the upper limits of
	// Similar, with 95% confidence.
	FPR float64

	// OldFilters counts the filters of earlier Sets that are asked too, since an
	// index that they were made of is damaged.
	OldFilters int

	// Capacity is how many keys the filter is meant for. A sized or counting
	// filter is made anew before it has more.
	Capacity float64

	// FilterBytes is the memory that the filter takes.
	FilterBytes uint64

	// Took is how long reading what had changed and making this Set took.
	Took time.Duration

	// Warning says in words that there are more keys; else it is empty.
	Warning string
}

// Stats describes the Set. The slices in it are shared: do not change them.
func (s *Set) Stats() SetStats {
	stats := s.stats
	stats.Generation = s.generation
	if p := s.filter.probed(); p != nil && stats.Unprobed {
		return s.StatsWith(p.similar)
	}
	return stats
}

// StatsWith returns the stats as if similar were what [Set.Probe] has measured.
func (s *Set) StatsWith(similar []Similar) SetStats {
	stats := s.stats
	stats.Generation, stats.Warning = s.generation, ""
	s.filter.describeWith(&stats, similar)
	return stats
}

// describe returns the stats of the Set, whose lists are described already.
func (s *Set) describe(lists []SetList) SetStats {
	var stats SetStats
	s.filter.describe(&stats)
	for i := range lists {
		l := lists[i].Stats
		keys := l.Entries - l.Duplicates
		if lists[i].PerRecipient {
			keys = int(lists[i].Index.keys()) // those of recipients too
		}
		l.FillRatio, l.FPR = s.filter.alone(keys)
		stats.Lists = append(stats.Lists, l)
		stats.Entries += l.Entries
		stats.Invalid += l.Invalid
	}
	return stats
}
