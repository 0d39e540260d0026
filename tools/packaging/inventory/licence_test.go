package main

import (
	"slices"
	"testing"
)

func TestIdentify(t *testing.T) {
	for text, want := range map[string]string{
		"Apache License\n Version 2.0, January 2004\n TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND":                    "Apache-2.0",
		"Permission is hereby granted, free of charge, to any\nperson. THE SOFTWARE IS PROVIDED":                          "MIT",
		"Redistributions of source code must retain. Redistributions in binary\nform must reproduce.":                     "BSD-2-Clause",
		"Redistributions of source code must retain. Redistributions in binary form must reproduce. * Neither\n the name": "BSD-3-Clause",
		"See the file COPYING.": "",
	} {
		if got := identify(text); got != want {
			t.Errorf("identify(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestHolders(t *testing.T) {
	text := "MIT\n\nCopyright (c) 2016 Ann. All rights reserved.\n  Copyright 2009 The Go Authors.\nCopyright [yyyy] [name]\nthe above copyright notice\n"
	if got, want := holders(text), []string{"2016 Ann.", "2009 The Go Authors."}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
