-- An exempt client over IPv6, a login, and a connection that breaks off in a message.
conn = mt.connect(socket, 10, 0.5)
if conn == nil then error("no connection") end
if mt.conninfo(conn, "exempt.example", "2001:db8::9") ~= nil then error("conninfo") end
if mt.mailfrom(conn, "<a@reject.example>") ~= nil then error("mailfrom") end
if mt.rcptto(conn, "<you@example.net>") ~= nil then error("rcptto") end
if mt.getreply(conn) ~= SMFIR_CONTINUE then error("the exempt client is refused") end
mt.disconnect(conn, false)

conn = mt.connect(socket)
if mt.conninfo(conn, "client.example", "192.0.2.1") ~= nil then error("conninfo") end
mt.macro(conn, SMFIC_MAIL, "i", "4ABC", "{auth_authen}", "ann")
if mt.mailfrom(conn, "<a@reject.example>") ~= nil then error("mailfrom") end
if mt.rcptto(conn, "<you@example.net>") ~= nil then error("rcptto") end
if mt.getreply(conn) ~= SMFIR_CONTINUE then error("the authenticated client is refused") end
mt.abort(conn)
mt.macro(conn, SMFIC_MAIL, "i", "4ABD")
if mt.mailfrom(conn, "<a@reject.example>") ~= nil then error("mailfrom") end
if mt.rcptto(conn, "<you@example.net>") ~= nil then error("rcptto") end
if mt.getreply(conn) ~= SMFIR_REPLYCODE then error("the login outlives its message") end
mt.disconnect(conn)
