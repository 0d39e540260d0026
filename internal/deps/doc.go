// Package deps holds the list of the modules that the three libraries smtpfilter,
// blocklist and hashfamily bring into a program that imports them, in modules.txt, each
// with what it is for. Its test fails when a library brings another module, or no longer
// brings a listed one.
package deps
