"""A person at a terminal: runs a program in a pseudo-terminal and answers its prompts.

Arguments: a JSON list of [text that is shown, keys that are typed then], and the program with its arguments. Prints the
session without control sequences, and ends with the code of the program.
"""

import json
import os
import pty
import re
import select
import sys

answers, program = json.loads(sys.argv[1]), sys.argv[2:]
child, terminal = pty.fork()
if child == 0:
    os.execvp(program[0], program)

shown, seen = "", 0
while True:
    if not select.select([terminal], [], [], 60)[0]:
        sys.exit(f"nothing for 60 s after:\n{shown}")
    try:
        chunk = os.read(terminal, 65536)
    except OSError:  # The program has ended.
        break
    if not chunk:
        break
    # A sequence may be cut between two reads: all of it is cleaned again.
    raw = (raw if shown else b"") + chunk
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[\r\x07]", "", raw.decode("utf8", "replace"))
    if answers and answers[0][0] in shown[seen:]:
        seen = len(shown)
        os.write(terminal, answers.pop(0)[1].encode())
sys.stdout.write(shown)
if answers:
    sys.exit(f"was not asked: {answers}")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
