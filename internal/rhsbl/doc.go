// Package rhsbl answers for the lists over DNS. Mail servers and filters ask it as they
// ask public lists: for domains as an RHSBL (RFC 5782), for addresses as a HashBL.
//
// # Zone of domains
//
// The name "spam.example.dbl.example.org" asks in the zone "dbl.example.org" about the
// domain spam.example. It is judged as a sender there whose local part nobody has: entries
// of domains count, with allow lists, exceptions and precedence as for mail, and entries of
// addresses and of local parts do not. A is the verdict's action:
//
//	127.0.0.2  reject
//	127.0.0.3  defer
//	127.0.0.4  tag
//	127.0.0.5  discard
//
// TXT names the list and the public reason. What the lists accept does not exist. The test
// points are TEST, which is listed, and INVALID, which is not.
//
// # Zone of hashes
//
// A name in the hashed zone begins with the SHA-1 or MD5 of an address in lower case, in
// hexadecimal digits or in rspamd's base32. It is found if a block list has an entry of
// exactly that address. Then the address is judged as for mail. An address that only its
// domain or its local part lists is not found: nobody can hash what is not known.
//
// Lists that another server answers for are not asked, in either zone: who asks here can ask
// there.
//
// # Stages
//
// A question does not say where the sender stands. It is judged as one in the envelope. A
// list whose only stage is header is not asked, unless the server's Lists name it: then it
// is asked about names that the others do not know.
package rhsbl
