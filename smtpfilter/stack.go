package smtpfilter

// stackRoom is what the deepest calls of a transaction need, in bytes.
const stackRoom = 9 << 10

// growStack has the goroutine's stack grow to what a transaction needs. It would by
// itself, but then in steps, and each time all callers' frames are copied, of which there
// are more the later it happens. A goroutine begins with what others have needed on
// average, which is little where most clients wait.
//
//go:noinline
func growStack(i int) byte {
	var room [stackRoom]byte
	return room[i%stackRoom]
}
