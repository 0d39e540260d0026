-- Version 2: every packet is answered.
conn = mt.connect(socket, 10, 0.5)
if conn == nil then error("no connection") end
if mt.negotiate(conn, 2, SMFIF_ADDHDRS + SMFIF_CHGBODY + SMFIF_ADDRCPT + SMFIF_DELRCPT, 0x7f) ~= nil then error("negotiation") end

function continued(what)
	if mt.getreply(conn) ~= SMFIR_CONTINUE then error(what .. " is not continued") end
end
if mt.conninfo(conn, "client.example", "192.0.2.1") ~= nil then error("conninfo") end
continued("CONNECT")
if mt.helo(conn, "client.example") ~= nil then error("helo") end
continued("HELO")
if mt.mailfrom(conn, "<a@tag.example>") ~= nil then error("mailfrom") end
continued("MAIL")
if mt.rcptto(conn, "<you@example.net>") ~= nil then error("rcptto") end
continued("RCPT")
if mt.header(conn, "From", "a@clean.example") ~= nil then error("header") end
continued("a header field")
if mt.eom(conn) ~= nil then error("eom") end
continued("the message")
if not mt.eom_check(conn, MT_HDRADD, "X-Spamgate", "listed; list=marked; reason=unsure") then error("no tag") end
mt.disconnect(conn)
