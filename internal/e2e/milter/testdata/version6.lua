-- Version 6 with all that a mail server may offer: what is left out and not answered is
-- respected, a refused recipient leaves the others, and the header is judged at the end.
conn = mt.connect(socket, 10, 0.5)
if conn == nil then error("no connection") end
if mt.negotiate(conn, 6, nil, nil) ~= nil then error("negotiation") end
for _, option in ipairs({SMFIP_NOBODY, SMFIP_NOEOH, SMFIP_NODATA, SMFIP_NOUNKNOWN, SMFIP_NR_CONN, SMFIP_NR_HELO, SMFIP_NR_HDR}) do
	if not mt.test_option(conn, option) then error("option " .. option .. " is not used") end
end
if not mt.test_action(conn, SMFIF_ADDHDRS) then error("no fields may be added") end
if mt.test_action(conn, SMFIF_CHGBODY) then error("the body may be changed") end

if mt.conninfo(conn, "client.example", "192.0.2.1") ~= nil then error("conninfo") end
if mt.helo(conn, "client.example") ~= nil then error("helo") end
mt.macro(conn, SMFIC_MAIL, "i", "4ABC")
if mt.mailfrom(conn, "<a@reject.example>", "SIZE=100") ~= nil then error("mailfrom") end
if mt.getreply(conn) ~= SMFIR_CONTINUE then error("MAIL is refused") end
if mt.rcptto(conn, "<you@example.net>") ~= nil then error("rcptto") end
if mt.getreply(conn) ~= SMFIR_REPLYCODE then error("RCPT is not refused") end
if mt.rcptto(conn, "<postmaster@example.net>", "NOTIFY=NEVER") ~= nil then error("rcptto") end
if mt.getreply(conn) ~= SMFIR_CONTINUE then error("postmaster is refused") end
if mt.header(conn, "From", " a@reject.example") ~= nil then error("header") end
if mt.eom(conn) ~= nil then error("eom") end
if mt.getreply(conn) ~= SMFIR_CONTINUE then error("the message is refused") end
mt.abort(conn)

-- The tags of the envelope and the header.
if mt.mailfrom(conn, "<a@tag.example>") ~= nil then error("mailfrom") end
if mt.rcptto(conn, "<you@example.net>") ~= nil then error("rcptto") end
if mt.header(conn, "From", " b@tag.example") ~= nil then error("header") end
if mt.eom(conn) ~= nil then error("eom") end
if mt.getreply(conn) ~= SMFIR_CONTINUE then error("the message is refused") end
if not mt.eom_check(conn, MT_HDRADD, "X-Spamgate", " listed; list=marked; reason=unsure") then error("no tag") end

-- The header refuses.
if mt.mailfrom(conn, "<a@clean.example>") ~= nil then error("mailfrom") end
if mt.rcptto(conn, "<you@example.net>") ~= nil then error("rcptto") end
if mt.header(conn, "From", " \"Ann\"\n <a@reject.example>") ~= nil then error("header") end
if mt.eom(conn) ~= nil then error("eom") end
if mt.getreply(conn) ~= SMFIR_REPLYCODE then error("the message is not refused") end

-- A discarded recipient is deleted, an exempt one stays.
if mt.mailfrom(conn, "<a@discard.example>") ~= nil then error("mailfrom") end
if mt.rcptto(conn, "<you@example.net>") ~= nil then error("rcptto") end
if mt.rcptto(conn, "<abuse@example.net>") ~= nil then error("rcptto") end
if mt.eom(conn) ~= nil then error("eom") end
if mt.getreply(conn) ~= SMFIR_CONTINUE then error("the message is not passed") end
if not mt.eom_check(conn, MT_RCPTDELETE, "<you@example.net>") then error("the recipient is not deleted") end
if mt.eom_check(conn, MT_RCPTDELETE, "<abuse@example.net>") then error("the exempt recipient is deleted") end

-- All recipients are discarded.
if mt.mailfrom(conn, "<a@discard.example>") ~= nil then error("mailfrom") end
if mt.rcptto(conn, "<you@example.net>") ~= nil then error("rcptto") end
if mt.eom(conn) ~= nil then error("eom") end
if mt.getreply(conn) ~= SMFIR_DISCARD then error("the message is not discarded") end
mt.disconnect(conn)
