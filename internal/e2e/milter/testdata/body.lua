-- A mail server that cannot leave anything out sends the body too, and may not add a field.
conn = mt.connect(socket, 10, 0.5)
if conn == nil then error("no connection") end
if mt.negotiate(conn, 4, 0, 0) ~= nil then error("negotiation") end
if mt.test_action(conn, SMFIF_ADDHDRS) then error("fields may be added, which was not offered") end

function continued(what)
	if mt.getreply(conn) ~= SMFIR_CONTINUE then error(what .. " is not continued") end
end
if mt.conninfo(conn, "client.example", "unspec") ~= nil then error("conninfo") end
continued("CONNECT")
if mt.helo(conn, "client.example") ~= nil then error("helo") end
continued("HELO")
if mt.unknown(conn, "NOSUCH command") ~= nil then error("unknown") end
continued("an unknown command")
if mt.mailfrom(conn, "<a@tag.example>") ~= nil then error("mailfrom") end
continued("MAIL")
if mt.rcptto(conn, "<you@example.net>") ~= nil then error("rcptto") end
continued("RCPT")
if mt.data(conn) ~= nil then error("data") end
continued("DATA")
if mt.header(conn, "From", "a@clean.example") ~= nil then error("header") end
continued("a header field")
if mt.eoh(conn) ~= nil then error("eoh") end
continued("the end of the header")
if mt.bodyrandom(conn, 200000) ~= nil then error("body") end
continued("the body")
if mt.eom(conn) ~= nil then error("eom") end
continued("the message")
if mt.eom_check(conn, MT_HDRADD) then error("a field is added") end
mt.disconnect(conn)
