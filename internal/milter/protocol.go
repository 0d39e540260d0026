package milter

// The commands of a mail server, by the first byte of a packet.
const (
	cmdAbort     = 'A' // the message ends; no answer
	cmdBody      = 'B'
	cmdConnect   = 'C'
	cmdMacros    = 'D' // for the command in its first byte; no answer
	cmdEnd       = 'E' // of the message
	cmdHelo      = 'H'
	cmdQuitNC    = 'K' // QUIT, and another client follows on this connection; no answer
	cmdHeader    = 'L' // one field
	cmdMail      = 'M'
	cmdEndHeader = 'N'
	cmdNegotiate = 'O'
	cmdQuit      = 'Q' // no answer
	cmdRcpt      = 'R'
	cmdData      = 'T'
	cmdUnknown   = 'U' // a command of SMTP that the mail server does not know
)

// The answers.
const (
	ansDeleteRcpt = '-'
	ansContinue   = 'c'
	ansDiscard    = 'd'
	ansAddField   = 'h' // at the end of the header
	ansReply      = 'y' // a refusal with its code and text
	ansSkip       = 's' // continue, and the rest of the body is not wanted
)

// What a milter may do to a message (SMFIF).
const (
	mayAddFields   = 1 << 0
	mayDeleteRcpts = 1 << 3
	mayNameMacros  = 1 << 8 // say in the negotiation which macros it wants
)

// What a mail server leaves out, and what it wants no answer to (SMFIP).
const (
	noBody       = 1 << 4
	noEndHeader  = 1 << 6
	quietHeader  = 1 << 7 // no answer to a header field
	noUnknown    = 1 << 8
	noData       = 1 << 9
	maySkip      = 1 << 10 // ansSkip is understood
	quietConnect = 1 << 12
	quietHelo    = 1 << 13
	quietData    = 1 << 16
	quietUnknown = 1 << 17
	quietEndHdr  = 1 << 18
	quietBody    = 1 << 19
	leadingSpace = 1 << 20 // values of fields come and go with the space after the colon
)

// The versions that a Server speaks. Version 3 has cmdUnknown, version 4 cmdData, version 6
// the flags from quietConnect on.
const (
	minVersion = 2
	maxVersion = 6
)

// macroStages are the numbers of the commands whose macros are wanted, in the negotiation,
// and the names of the macros. Sendmail looks at the list of the end of the header before it
// uses that of the end of the message, so both are there.
var macroStages = []struct {
	number uint32
	names  string
}{
	{0, "j"},               // CONNECT
	{2, "i {auth_authen}"}, // MAIL
	{3, "i {rcpt_addr}"},   // RCPT
	{4, "i"},               // DATA
	{5, "i"},               // the end of the message
	{6, "i"},               // the end of the header
}
