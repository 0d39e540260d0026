#!/usr/bin/env python3
"""Writes weighted.tsv, digest.tsv, double.tsv and seeded.tsv beside itself.

A second implementation of the families, made from the published definitions of
the hashes and from the formulas in the package's documentation, with Python's
big integers and nothing but its standard library. Every number is written out;
nothing is taken from the Go code. README.md says where the definitions stand.
"""

import hashlib
import os
import re
import struct

M32, M64, M128 = 2**32 - 1, 2**64 - 1, 2**128 - 1


def rotl(x, r, bits=64):
    return (x << r | x >> (bits - r)) & ((1 << bits) - 1)


def words(data):
    """The little-endian 64-bit numbers that data consists of."""
    return list(struct.unpack("<%dQ" % (len(data) // 8), data))


# MurmurHash3, the 128-bit variant for 64-bit machines, seed 0.


def murmur3(data):
    c1, c2 = 0x87C37B91114253D5, 0x4CF5AD432745937F

    def k1(x):
        return rotl(x * c1 & M64, 31) * c2 & M64

    def k2(x):
        return rotl(x * c2 & M64, 33) * c1 & M64

    def fmix(x):
        x ^= x >> 33
        x = x * 0xFF51AFD7ED558CCD & M64
        x ^= x >> 33
        x = x * 0xC4CEB9FE1A85EC53 & M64
        return x ^ x >> 33

    h1 = h2 = 0
    whole = len(data) // 16 * 16
    for i in range(0, whole, 16):
        a, b = words(data[i : i + 16])
        h1 = ((rotl(h1 ^ k1(a), 27) + h2) * 5 + 0x52DCE729) & M64
        h2 = ((rotl(h2 ^ k2(b), 31) + h1) * 5 + 0x38495AB5) & M64
    a, b = words(data[whole:].ljust(16, b"\0"))
    h1 ^= k1(a) ^ len(data)
    h2 ^= k2(b) ^ len(data)
    h1 = (h1 + h2) & M64
    h2 = (h2 + h1) & M64
    h1, h2 = fmix(h1), fmix(h2)
    h1 = (h1 + h2) & M64
    return h1, (h2 + h1) & M64


# HighwayHash-128.


class Highway:
    start0 = [0xDBE6D5D5FE4CCE2F, 0xA4093822299F31D0, 0x13198A2E03707344, 0x243F6A8885A308D3]
    start1 = [0x3BD39E10CB0EF593, 0xC0ACF169B5F18A8C, 0xBE5466CF34E90C6C, 0x452821E638D01377]

    def __init__(self, key):
        lanes = words(key)
        self.mul0, self.mul1 = list(self.start0), list(self.start1)
        self.v0 = [m ^ k for m, k in zip(self.mul0, lanes)]
        self.v1 = [m ^ rotl(k, 32) for m, k in zip(self.mul1, lanes)]

    @staticmethod
    def zipper(even, odd):
        """The two lanes as 16 bytes, in another order, added to two others."""
        b = struct.pack("<2Q", even, odd)
        return words(bytes(b[i] for i in (3, 12, 2, 5, 14, 1, 15, 0, 11, 4, 10, 13, 9, 6, 8, 7)))

    def update(self, lanes):
        v0, v1, mul0, mul1 = self.v0, self.v1, self.mul0, self.mul1
        for i in range(4):
            v1[i] = (v1[i] + mul0[i] + lanes[i]) & M64
            mul0[i] ^= (v1[i] & M32) * (v0[i] >> 32)
            v0[i] = (v0[i] + mul1[i]) & M64
            mul1[i] ^= (v0[i] & M32) * (v1[i] >> 32)
        for source, target in ((v1, v0), (v0, v1)):
            for i in (0, 2):
                a, b = self.zipper(source[i], source[i + 1])
                target[i] = (target[i] + a) & M64
                target[i + 1] = (target[i + 1] + b) & M64

    def rest(self, data):
        """The last 1 to 31 bytes."""
        n = len(data)
        self.v0 = [(v + (n << 32) + n) & M64 for v in self.v0]
        self.v1 = [rotl(v >> 32, n, 32) << 32 | rotl(v & M32, n, 32) for v in self.v1]
        whole, tail = n & ~3, data[n & ~3 :]
        packet = bytearray(32)
        packet[:whole] = data[:whole]
        if n & 16:
            packet[28:32] = data[n - 4 :]
        elif tail:
            packet[16:19] = bytes((tail[0], tail[len(tail) >> 1], tail[-1]))
        self.update(words(packet))

    def sum128(self):
        for _ in range(6):
            self.update([rotl(self.v0[i], 32) for i in (2, 3, 0, 1)])
        return tuple((self.v0[i] + self.mul0[i] + self.v1[i + 2] + self.mul1[i + 2]) & M64 for i in (0, 1))


def highwayhash(data, key):
    h = Highway(key)
    whole = len(data) & ~31
    for i in range(0, whole, 32):
        h.update(words(data[i : i + 32]))
    if data[whole:]:
        h.rest(data[whole:])
    return h.sum128()


# XXH3, 64 bits, with a seed and the default secret.

SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
P32 = [None, 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D]
P64 = [None, 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5]


def read64(data, at):
    return struct.unpack_from("<Q", data, at)[0]


def read32(data, at):
    return struct.unpack_from("<I", data, at)[0]


def swap64(x):
    return int.from_bytes(x.to_bytes(8, "little"), "big")


def fold(a, b):
    p = a * b
    return p & M64 ^ p >> 64


def avalanche64(h):
    h = (h ^ h >> 33) * P64[2] & M64
    h = (h ^ h >> 29) * P64[3] & M64
    return h ^ h >> 32


def avalanche3(h):
    h = (h ^ h >> 37) * 0x165667919E3779F9 & M64
    return h ^ h >> 32


def xxh3_short(data, seed):
    """Up to 16 bytes."""
    n = len(data)
    if n == 0:
        return avalanche64(seed ^ read64(SECRET, 56) ^ read64(SECRET, 64))
    if n <= 3:
        combined = data[0] << 16 | data[n >> 1] << 24 | data[-1] | n << 8
        flip = (read32(SECRET, 0) ^ read32(SECRET, 4)) + seed & M64
        return avalanche64(combined ^ flip)
    if n <= 8:
        swapped = int.from_bytes((seed & M32).to_bytes(4, "little"), "big")
        seed ^= swapped << 32
        flip = (read64(SECRET, 8) ^ read64(SECRET, 16)) - seed & M64
        h = (read32(data, n - 4) + (read32(data, 0) << 32)) ^ flip
        h ^= rotl(h, 49) ^ rotl(h, 24)
        h = h * 0x9FB21C651E98DF25 & M64
        h ^= (h >> 35) + n
        h = h * 0x9FB21C651E98DF25 & M64
        return h ^ h >> 28
    low = (read64(SECRET, 24) ^ read64(SECRET, 32)) + seed & M64 ^ read64(data, 0)
    high = (read64(SECRET, 40) ^ read64(SECRET, 48)) - seed & M64 ^ read64(data, n - 8)
    return avalanche3(n + swap64(low) + high + fold(low, high) & M64)


def xxh3_middle(data, seed):
    """17 to 240 bytes."""
    n = len(data)

    def mix(at, secret):
        return fold(
            read64(data, at) ^ (read64(SECRET, secret) + seed & M64),
            read64(data, at + 8) ^ (read64(SECRET, secret + 8) - seed & M64),
        )

    acc = n * P64[1] & M64
    if n <= 128:
        for i in range((n - 1) // 32 + 1):
            acc += mix(16 * i, 32 * i) + mix(n - 16 * i - 16, 32 * i + 16)
        return avalanche3(acc & M64)
    for i in range(8):
        acc += mix(16 * i, 16 * i)
    acc = avalanche3(acc & M64)
    for i in range(8, n // 16):
        acc += mix(16 * i, 16 * (i - 8) + 3)
    return avalanche3(acc + mix(n - 16, 136 - 17) & M64)


def xxh3_long(data, seed):
    """From 241 bytes on."""
    n = len(data)
    secret = b"".join(
        struct.pack("<2Q", read64(SECRET, i) + seed & M64, read64(SECRET, i + 8) - seed & M64) for i in range(0, 192, 16)
    )
    acc = [P32[3], P64[1], P64[2], P64[3], P64[4], P32[2], P64[5], P32[1]]

    def accumulate(at, secret_at):
        for i in range(8):
            x = read64(data, at + 8 * i)
            keyed = x ^ read64(secret, secret_at + 8 * i)
            acc[i ^ 1] = acc[i ^ 1] + x & M64
            acc[i] = acc[i] + (keyed & M32) * (keyed >> 32) & M64

    for stripe in range((n - 1) // 64):
        accumulate(64 * stripe, 8 * (stripe % 16))
        if stripe % 16 == 15:
            for i in range(8):
                acc[i] = (acc[i] ^ acc[i] >> 47 ^ read64(secret, 128 + 8 * i)) * P32[1] & M64
    accumulate(n - 64, 192 - 64 - 7)
    h = n * P64[1]
    for i in range(4):
        h += fold(acc[2 * i] ^ read64(secret, 11 + 16 * i), acc[2 * i + 1] ^ read64(secret, 19 + 16 * i))
    return avalanche3(h & M64)


def xxh3(data, seed):
    if len(data) <= 16:
        return xxh3_short(data, seed)
    return (xxh3_middle if len(data) <= 240 else xxh3_long)(data, seed)


# The families.


def weighted(key, seed, m):
    h = 0
    for c in key:
        h = seed * h + c & M32
    return h % m


def digest(key, m, k):
    left, indices = 0, []
    for _ in range(k):
        if left < m:
            key += b"."
            left = int.from_bytes(hashlib.md5(key).digest(), "big")
        indices.append(left % m)
        left //= m
    return indices


def plain_double(h1, h2, m, k):
    """Double hashing as in the textbooks, with an odd step in powers of two."""
    a, b = h1 % m, h2 % m
    if m & (m - 1) == 0:
        b |= 1
    return [(a + i * b) % m for i in range(k)]


def triple(h1, h2, h3, m, k):
    """Dillinger and Manolios's triple hashing of three numbers of 64 bits."""
    a, b, c = (h * m >> 64 for h in (h1, h2, h3))
    return [(a + i * b + i * (i - 1) // 2 * c) % m for i in range(k)]


def double(h1, h2, m, k):
    return triple(h1, h2, (h1 & M32) << 32 | h2 & M32, m, k)


def seeded(h, m, k):
    return triple(h, rotl(h, 32, 64), h * 0x9E3779B97F4A7C15 & M64, m, k)


PUBLIC_KEY = bytes(range(32))
KEYS = [
    b"",
    b"a",
    b"ab",
    b"abc",
    b"com",
    b"example.com",
    b"spam@example.com",
    b"user+tag@example.org",
    b"abcdefghijklmnopqrstuvwxyz1234567890",
    "bücher.example".encode(),
    b"\xff\xfe\x80",
    b"a" * 254,
]
# Around the lengths at which the hashes change their way: 4, 8, 16, 32, 64, 128,
# 240 and, for XXH3, 1024 bytes.
ALPHABET = b"abcdefghijklmnopqrstuvwxyz0123456789.-@"
LENGTHS = [4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 240, 241, 1024, 1025, 1100]


def escape(key):
    return "".join(chr(c) if 0x20 <= c < 0x7F else "\\x%02x" % c for c in key)


def long_keys():
    return [(ALPHABET * 40)[:n] for n in LENGTHS]


def sizes(key, first, *more):
    """One size is enough for a key that is there for the hash alone."""
    return (first, *more) if key in KEYS else (first,)


def write(name, header, rows):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    with open(path, "w", newline="\n") as file:
        for row in [header] + rows:
            file.write("\t".join(map(str, row)) + "\n")


def listed(indices):
    return ",".join(map(str, indices))


def main():
    seeds = [5, 7, 11, 13, 31, 37, 61]
    write(
        "weighted.tsv",
        ["key"] + ["seed%d" % s for s in seeds],
        [[escape(key)] + [weighted(key, s, 2**25) for s in seeds] for key in KEYS],
    )
    write(
        "digest.tsv",
        ["key", "m", "k", "indices"],
        [
            [escape(key), m, k, listed(digest(key, m, k))]
            for key in KEYS
            for m, k in ((16, 3), (1000, 10), (2**28, 11), (2**40, 7))
        ],
    )
    rows = []
    for key in KEYS + long_keys():
        for family, indices, (h1, h2) in (
            ("double", double, highwayhash(key, PUBLIC_KEY)),
            ("double:murmur3", double, murmur3(key)),
            ("double:plain", plain_double, murmur3(key)),
        ):
            for m, k in sizes(key, (2**58, 5), (1000, 7), (2**28, 11), (10**15 + 37, 4)):
                rows.append([family, escape(key), m, k, listed(indices(h1, h2, m, k))])
    write("double.tsv", ["family", "key", "m", "k", "indices"], rows)
    rows = []
    for key in KEYS + long_keys():
        for seed in (0, 42, 2**64 - 1):
            h = xxh3(key, seed)
            for m, k in sizes(key, (2**32, 5), (1000, 7), (2**28, 11), (2**32 - 5, 4)):
                rows.append([seed, escape(key), m, k, listed(seeded(h, m, k))])
    write("seeded.tsv", ["seed", "key", "m", "k", "indices"], rows)


if __name__ == "__main__":
    main()
