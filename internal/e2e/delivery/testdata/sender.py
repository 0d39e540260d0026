#!/usr/bin/env python3
"""Send random messages with smtplib, and print a row of the ledger for each.

A row is a JSON object on a line: the message's id, the SHA-256 of its bytes as
they were sent (dot-stuffing apart), the number of the attempt, and the reply
that decided it; code 0 where there was none. With --retry a message that was
answered with 4xx, or not at all, is sent again until it is accepted.

The messages are made of any bytes but NUL, CR and LF, in lines of any length,
many of which begin with dots. The same --seed makes the same messages.
"""

import argparse
import hashlib
import json
import random
import smtplib
import sys
import threading
import time

ATTEMPTS = 100


def message(rng, ident):
    lines = [b"X-Ledger: " + ident.encode(), b"From: <a@example.com>", b"Subject: ledger", b""]
    for _ in range(rng.randrange(40)):
        length = rng.randrange(60_000) if rng.randrange(100) == 0 else rng.randrange(200)
        text = rng.randbytes(length).translate(None, b"\0\r\n")
        lines.append(b"." * rng.choice((0, 0, 0, 1, 1, 2, 3)) + text)
    return b"\r\n".join(lines) + b"\r\n"


def attempt(session, body):
    """Return the code and text that decided the message."""
    try:
        for code, text in (
            session.mail("a@example.com", ["BODY=8BITMIME"]),
            session.rcpt("b@example.net"),
        ):
            if code != 250:
                session.rset()
                return code, text.decode("latin-1")
        code, text = session.data(body)
        return code, text.decode("latin-1")
    except smtplib.SMTPDataError as e:  # DATA was not answered with 354
        return e.smtp_code, e.smtp_error.decode("latin-1")


class Sender(threading.Thread):
    def __init__(self, number, options, lock):
        super().__init__()
        self.number, self.options, self.lock = number, options, lock
        self.session = None
        self.failed = None

    def run(self):
        rng = random.Random(f"{self.options.seed}/{self.number}")
        try:
            for i in range(self.number, self.options.messages, self.options.threads):
                self.deliver(f"py-{self.options.seed}-{i}", rng)
                if rng.randrange(20) == 0:
                    self.disconnect()
            self.disconnect()
        except Exception as e:  # told by main, whose exit code it becomes
            self.failed = e

    def deliver(self, ident, rng):
        body = message(rng, ident)
        digest = hashlib.sha256(body).hexdigest()
        for n in range(ATTEMPTS):
            code, reply = self.once(body)
            row = {"id": ident, "sha256": digest, "attempt": n, "code": code, "reply": reply}
            with self.lock:
                print(json.dumps(row), flush=True)
            if not self.options.retry or code // 100 in (2, 5):
                return
            time.sleep(0.002 * n)

    def once(self, body):
        try:
            if self.session is None:
                self.session = smtplib.SMTP(self.options.host, self.options.port, "client.example", timeout=60)
                self.session.ehlo()
            code, reply = attempt(self.session, body)
            if code == 421:
                self.disconnect()
            return code, reply
        except smtplib.SMTPServerDisconnected as e:
            self.disconnect()
            return 0, str(e)

    def disconnect(self):
        session, self.session = self.session, None
        if session is None:
            return
        try:
            session.quit()
        except (smtplib.SMTPException, OSError):
            session.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--messages", type=int, default=100)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--retry", action="store_true")
    options = parser.parse_args()

    lock = threading.Lock()
    senders = [Sender(n, options, lock) for n in range(options.threads)]
    for s in senders:
        s.start()
    for s in senders:
        s.join()
    for s in senders:
        if s.failed is not None:
            print(f"sender {s.number}: {s.failed!r}", file=sys.stderr)
    return any(s.failed is not None for s in senders)


if __name__ == "__main__":
    sys.exit(main())
