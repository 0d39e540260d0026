// Package policyservice answers the questions of Postfix's smtpd about the senders of mail:
// it is a server of Postfix's access policy delegation protocol (SMTPD_POLICY_README), which
// check_policy_service asks. It judges, logs and counts as package door does for all doors.
//
// The protocol knows the envelope, and no header. Its answers:
//
//	DUNNO                     the mail passes, whether a list allows its sender or none knows it;
//	                          OK would end Postfix's checks, and may open a relay
//	550 5.7.1 text            the sender is refused
//	DEFER_IF_PERMIT 4.7.1 text  the sender is deferred, unless Postfix refuses it for good
//	PREPEND X-Spamgate: text  the message is tagged, in the first answer about it
//
// DISCARD would drop the message for all its recipients, those that every sender can reach
// included. So a list that discards tags here.
//
// If the lists cannot be asked, the server closes the connection without an answer. Postfix
// asks again, then it takes its default action.
//
// Postfix asks at each recipient, and more often if it is configured so. The questions about
// one message have the same instance, and so they get the same answer with the same id, and
// one line in the log. A question without a recipient, before RCPT or about several
// recipients at DATA, is never answered with a refusal: some may be exempt.
package policyservice
