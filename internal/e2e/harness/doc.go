// Package harness holds what the end-to-end tests share: it builds the program, starts
// gates and real mail servers, and has an SMTP client that sends exactly what a test
// says. See the package e2e for how the tests are run.
package harness
