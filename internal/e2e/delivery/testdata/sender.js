#!/usr/bin/env node
// Sends files with nodemailer over a few connections, and prints a row of the
// ledger for each: {"id": the file's name, "code": the reply's code, "reply": ...}.
//
//	sender.js NODEMAILER HOST PORT FILE...

const fs = require("fs");
const path = require("path");

const [module_, host, port, ...files] = process.argv.slice(2);
const nodemailer = require(module_);

const transport = nodemailer.createTransport({
  host,
  port: Number(port),
  name: "client.example",
  pool: true,
  maxConnections: 12,
  maxMessages: 20,
  ignoreTLS: true,
});

async function send(file) {
  const row = { id: path.basename(file) };
  try {
    const info = await transport.sendMail({
      envelope: { from: "a@example.com", to: ["b@example.net"] },
      raw: fs.readFileSync(file),
    });
    row.code = Number(info.response.slice(0, 3));
    row.reply = info.response;
  } catch (e) {
    row.code = e.responseCode || 0;
    row.reply = e.response || String(e);
  }
  console.log(JSON.stringify(row));
}

Promise.all(files.map(send)).then(() => transport.close());
