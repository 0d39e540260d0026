// Package servers proves that the gate works with Postfix, Exim, OpenSMTPD and Dovecot:
// mail arrives, refusals and extensions pass, logins work, and the configurations
// that config init writes and the shipped one do what they say.
package servers
