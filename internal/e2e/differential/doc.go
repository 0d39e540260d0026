// Package differential looks for senders that the gate does not judge and a mail reader
// shows. It makes random header fields, sends them through the gate and a mail server, and
// has four readers say whom the message that arrives is from: Go's net/mail, Python's two
// parsers, nodemailer, and the ENVELOPE of Dovecot's IMAP. tools/differential runs it.
package differential
