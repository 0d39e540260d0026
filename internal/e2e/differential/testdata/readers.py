# Reads messages, one a line in base64, and prints for each a line of JSON: the
# addresses that Python's two parsers find in the fields that name a sender.
import base64
import email
import email.policy
import email.utils
import json
import sys

FIELDS = ("From", "Sender", "Reply-To")

# policy.default takes time that grows with the square of a field's length, or worse.
LONGEST = 3000


def compat32(raw):
    m = email.message_from_bytes(raw)
    values = [str(v) for f in FIELDS for v in m.get_all(f, [])]
    return [a for _, a in email.utils.getaddresses(values)]


def default(raw):
    m = email.message_from_bytes(raw, policy=email.policy.default)
    found = []
    for name, value in m.raw_items():
        if name.lower() in ("from", "sender", "reply-to") and len(value) < LONGEST:
            found += [a.addr_spec for a in m.policy.header_fetch_parse(name, value).addresses]
    return found


def tried(reader, raw):
    try:
        return reader(raw)
    except Exception:  # policy.default fails for some fields, and shows nothing then
        return []


for line in sys.stdin:
    raw = base64.b64decode(line)
    print(json.dumps({"Python's compat32": tried(compat32, raw), "Python's policy.default": tried(default, raw)}), flush=True)
