package sender

// Wrappings is a set.
type Wrappings uint8

func Unwrap(a Address, w Wrappings) (inner Address, scheme string, ok bool) {
	return Address{}, "", false
}
