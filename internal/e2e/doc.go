// Package e2e holds the end-to-end tests: the real program, run as a process with
// files of its own, between real clients (smtp-source, swaks, curl, Python's smtplib,
// nodemailer, Postfix and Exim) and real next hops (Postfix, Exim, OpenSMTPD, Dovecot, a
// byte-exact sink, a Maildir).
//
// Each subject is a package, whose doc.go says what its tests prove:
//
//   - delivery: mail is neither lost, duplicated nor changed
//   - console: the console and its API: who is let in, edits, the history under kills
//   - decisions: the history of decisions, found by the gate and without one
//   - addresses: the gate judges the sender that the next hop sees
//   - differential: no mail reader sees a sender that the gate has not judged; for
//     tools/differential
//   - servers: the gate works with the mail servers and the examples of the docs
//   - policyservice: Postfix decides by the policy service like the gate
//   - nexthops: several, slow, dead and looping next hops
//   - lists: lists are changed, broken, held, accepted and rolled back
//   - milter: Postfix, Sendmail and miltertest ask the gate's milter
//   - exports: Postfix, rbldnsd, BIND and rspamd decide by exported lists like the gate
//   - state: the state directory survives kills, full disks and traps
//   - restarts: signals, reload, handover and systemd
//   - monitoring: the log, the metrics and the admin socket
//   - limits: overload, and what the gate uses of the machine
//
// What they share is in the package harness. Run all of them, or one subject, with
//
//	go test ./internal/e2e/...
//	go test ./internal/e2e/lists
//
// A test whose tools are not installed is skipped; with CI=true in the environment it
// fails. .ci/servers fetches the servers that cannot be installed beside Postfix, and
// SPAMGATE_E2E_SERVERS names the folder that it has filled. With SPAMGATE_E2E_FULL=1 the
// ledger has its full size of 20,000 messages, 200 gates are killed while they build, and
// exports compares 10,000 decisions of each program. SPAMGATE_E2E_RACE=1 gives the gates the
// race detector, and .ci/run gives it to those of some packages; with -race the tests have
// it, too.
//
// Go tests several packages at the same time. Those of limits measure memory, system
// calls and time, so they run alone: each test process locks this directory, and that of
// limits locks it exclusively.
package e2e
