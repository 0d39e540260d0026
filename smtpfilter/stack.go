package smtpfilter

// stackSize is what the deepest calls of a transaction need, in bytes.
const stackSize = 9 << 10

// growStack grows the goroutine's stack to what a transaction needs. Without it the stack
// grows in steps, and each step copies all frames. A goroutine begins with the average
// stack of others, which is small if most clients wait.
//
//go:noinline
func growStack(i int) byte {
	var stack [stackSize]byte
	return stack[i%stackSize]
}
