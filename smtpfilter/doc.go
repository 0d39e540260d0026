// Package smtpfilter is the SMTP side of the gate: go-smtp's Backend between a
// client and the next hop. It asks a verdict.Checker about every sender, in the
// envelope and in the header section, turns the verdict into an action and the
// action into a reply, and passes everything else on untouched.
//
// What it promises, whatever the two ends do:
//
//   - The client gets 250 for a message only after the next hop's 250.
//   - A message that is refused, cut short, too large or timed out is never
//     completed at the next hop.
//   - The sender that is judged is the sender that the next hop sees.
//   - Nothing inside a message is executed as a command, by either side.
//   - The message arrives byte for byte, with trace fields in front.
package smtpfilter
