package blocklist

import (
	"testing"
)

func TestListTypeNames(t *testing.T) {
	for _, want := range []ListType{Block, Allow} {
		var got ListType
		if text, err := want.MarshalText(); err != nil || got.UnmarshalText(text) != nil || got != want {
			t.Errorf("%s read as %s, %v", text, got, err)
		}
	}
	if text := Block.String() + "," + Allow.String() + "," + ListType(9).String(); text != "block,allow,ListType(9)" {
		t.Error(text)
	}
	var l ListType
	err := l.UnmarshalText([]byte("white"))
	if err == nil || err.Error() != `unknown list type "white": use block, allow` || l != Block {
		t.Error(l, err)
	}
}
