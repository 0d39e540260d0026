import sys, zlib
for line in sys.stdin.buffer:
    key = line.rstrip(b"\n")
    print(zlib.crc32(key), zlib.adler32(key), zlib.crc32(key[::-1]))
