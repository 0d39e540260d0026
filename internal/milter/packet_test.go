package milter

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

// TestPacketTooLarge: no memory is taken for a packet that announces too much.
func TestPacketTooLarge(t *testing.T) {
	for size, want := range map[uint32]string{0: "without a command", maxPacket + 1: "at most", 1 << 31: "at most"} {
		var buf []byte
		text := append(binary.BigEndian.AppendUint32(nil, size), "rest"...)
		_, _, err := readPacket(bufio.NewReader(bytes.NewReader(text)), &buf)
		if err == nil || !strings.Contains(err.Error(), want) || cap(buf) > 0 {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}
