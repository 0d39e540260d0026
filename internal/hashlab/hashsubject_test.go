package hashlab

import (
	"slices"
	"strings"
	"testing"

	"spamgate/hashfamily"
)

func TestHashSubjects(t *testing.T) {
	var names, controls []string
	for _, s := range hashSubjects(1) {
		names = append(names, s.Name)
		if s.Kind == KindControl {
			controls = append(controls, s.Name)
		}
		for _, key := range []string{"", "a", "spam@example.com", "\xff\xfe\x80\x00\xff\xff\xff\xff", strings.Repeat("z", 300)} {
			sum := s.sum([]byte(key))
			if s.bits < 64 && sum>>s.bits != 0 {
				t.Errorf("%s of %q is %#x, of more than %d bits", s.Name, key, sum, s.bits)
			}
			if s.sum32 != nil && uint64(s.sum32([]byte(key))) != sum {
				t.Errorf("%s of %q: %#x and %#x", s.Name, key, s.sum32([]byte(key)), sum)
			}
		}
	}
	want := []string{"RS", "JS", "PJW", "ELF", "BKDR", "SDBM", "DJB", "DEK", "BP", "FNV", "AP", "HighwayHash", "Murmur3", "ideal", "xxh3"}
	if !slices.Equal(names, want) || !slices.Equal(controls, want[13:]) {
		t.Errorf("%v with the controls %v, want %v", names, controls, want)
	}
}

// The hash that is looked at alone is the one that its family starts from.
func TestHashSubjectsAreTheFamilies(t *testing.T) {
	double, err := hashfamily.NewDouble(hashfamily.MaxDoubleBits, 1, publicKey[:])
	if err != nil {
		t.Fatal(err)
	}
	murmur, err := hashfamily.NewDoubleMurmur3(hashfamily.MaxDoubleBits, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		family hashfamily.Family
		index  func(sum uint64) uint64
	}{
		{"HighwayHash", double, func(sum uint64) uint64 { return sum >> 6 }},
		{"Murmur3", murmur, func(sum uint64) uint64 { return sum >> 6 }},
		{"ideal", newIdeal(1, 1<<63, 1), func(sum uint64) uint64 { return sum >> 1 }},
		{"xxh3", newXXH3(1<<63, 1), func(sum uint64) uint64 { return sum % (1 << 63) }},
	} {
		subject := subjectsNamed(t, tt.name)[0]
		for _, key := range []string{"", "a", "spam@example.com"} {
			if got, want := tt.family.Index(0, []byte(key)), tt.index(subject.sum([]byte(key))); got != want {
				t.Errorf("%s of %q: the family's index %d, by the hash alone %d", tt.name, key, got, want)
			}
		}
	}
}

func TestPublicKey(t *testing.T) {
	if got := PublicKey(); got != "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f" {
		t.Errorf("%s", got)
	}
}
