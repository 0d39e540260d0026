// Reads messages, one a line in base64, and prints for each a line of JSON: the addresses
// that nodemailer's parser finds in the fields that name a sender. The argument is
// nodemailer's directory. Fields are split as mailsplit does it, mailparser's own reader.
const addressparser = require(process.argv[2] + '/lib/addressparser');

function* addresses(list) {
    for (const a of list) {
        if (a.group) yield* addresses(a.group);
        else if (a.address) yield a.address;
    }
}

require('readline').createInterface({ input: process.stdin }).on('line', line => {
    const raw = Buffer.from(line, 'base64').toString('latin1');
    const lines = raw.split(/\r?\n\r?\n/, 1)[0].split(/\r?\n/);
    for (let i = lines.length - 1; i > 0; i--) {
        if (/^[ \t]/.test(lines[i])) {
            lines[i - 1] += ' ' + lines[i].trimStart();
            lines.splice(i, 1);
        }
    }
    const found = [];
    for (const field of lines) {
        const colon = field.indexOf(':');
        if (/^(from|sender|reply-to)$/i.test(field.slice(0, Math.max(colon, 0)).trim())) {
            found.push(...addresses(addressparser(Buffer.from(field.slice(colon + 1), 'latin1').toString('utf8'))));
        }
    }
    process.stdout.write(JSON.stringify({ nodemailer: found }) + '\n');
});
