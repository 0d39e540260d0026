// Package segment keeps the exact index of one list in an immutable file that is
// mapped into memory. A lookup by key reports whether the list has that entry, and
// returns its file, line and reason.
//
// A [Builder] collects entries from many goroutines and [Builder.Finish] makes the
// file. Its memory grows only by about a hundredth of the list's size. [Map] maps a
// file. The content of a file is not trusted: a checksum covers every byte. That of a
// block is compared when the block is first read, and again after [Segment.Recheck].
// If the mapping faults (the file was cut, the disk fails) the lookup returns an error
// and the process continues.
//
// # Entries for recipients
//
// The key of an entry for a recipient (see [Entry]) is the recipient's side, a tab, and the
// sender's side. For each different recipient's side there is one more key that ends with
// the tab, the marker. So one lookup tells that a recipient has no entries. A marker is
// not an entry: [Segment.Len], [Segment.Records] and [Segment.Duplicates] leave it out.
//
// # Entries of one key
//
// A segment has one entry for a key. Of several it keeps an exception rather than a
// plain entry, then the one without Until or with the later one, then the one of the
// earlier file, then of the earlier line.
//
// # Files
//
// A file is written under a temporary name ([TemporaryPrefix]) in its directory,
// synced and renamed, and the directory is synced. So the file at a path is complete,
// whatever interrupts a build. A killed process leaves its temporary file behind.
//
// # Format
//
// Version 1, or 2 if there are entries for recipients: a program that knows version 1 alone
// would take them for others. Integers are little-endian; uvarint and varint are those of
// encoding/binary. HH64 and HH256 are HighwayHash with 64 and 256 bits under the
// segment's [Key]. The parts follow each other without gaps:
//
//	header      256 bytes
//	blocks      entries in order of HH64(key), then key
//	comments    shared comments
//	table       firsts, then places: a first hash and a place for each block
//	meta        the caller's
//
// Header:
//
//	offset size
//	     0    8 "spamseg\n"
//	     8    4 version of the format: 1 or 2
//	    12    4 size of the header: 256
//	    16    8 size of the file
//	    24    8 HH64("spamgate segment key"): tells keys apart
//	    32    8 number of entries, markers included
//	    40    8 entries that were dropped because another has their key
//	    48    8 exceptions among the entries
//	    56    8 the earliest Until of an entry, in seconds since 1970; 0: none
//	    64    8 kinds of entries: bit i for kind i
//	    72    8 number of blocks
//	    80    8 size of the blocks
//	    88    8 number of comments
//	    96    8 size of the comments
//	   104    8 size of meta
//	   112   32 digest: HH256 of the header from 32 to 103, the comments and the
//	            table
//	   144   32 the caller's digest of the source
//	   176   32 the caller's digest of the options
//	   208    8 number of markers
//	   216    8 zero
//	   224   32 HH256 of the header up to here and of meta, not under the segment's
//	            key but under "spamgate segment header checksum"
//
// Block, of at most 4096 bytes unless a single record is larger or entries have one
// hash, since those are never separated:
//
//	12 bytes for each entry: its HH64(key), 8 bytes, in ascending order; where its
//	record ends, counted from the first record, 4 bytes
//	records
//
// Record:
//
//	1 byte: bits 0-2 kind (7: a marker), 3 exception, 4 defer, 5 has an Until, 6 has a shared
//	comment, 7 has a comment of its own
//	uvarint: length of the key; the key
//	uvarint: number of the file
//	uvarint: line
//	varint: Until, if it has one
//	either 2 bytes: number of the shared comment
//	or uvarint: length of the reason; the reason; the note up to the record's end
//
// Comments, at most [SharedComments], ordered by reason and note:
//
//	8 bytes for each: where its text ends, counted from the first text, 4 bytes;
//	length of the reason, 4 bytes
//	texts: the reason, then the note
//
// Table:
//
//	firsts: 8 bytes for each block, its first hash
//	places: 24 bytes for each block: where it begins, counted from the first
//	block; its HH64; its number of entries
package segment
