"""The programs under judgement."""

import glob
import json
import os
import subprocess
import sys

FOLDER = os.path.join(os.environ.get("CARGO_TARGET_DIR", "target"), "debug")
DEV = os.path.join(FOLDER, "dev")
FUNCTION = os.path.join(FOLDER, "action-group")


def events(door):
    """The paths of a door's event files, in order."""
    return sorted(glob.glob(f"events/{door}/*"))


def invoke(*files):
    """The answers of `dev invoke` to these files, of one process. None stands for an invocation that failed."""
    done = subprocess.run([DEV, "invoke", *files], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    if len(lines) != len(files):
        sys.exit(f"dev invoke answered {len(lines)} of {len(files)} events:\n{done.stderr}")
    answers = [json.loads(line) for line in lines]
    return [None if isinstance(a, dict) and "functionError" in a else a for a in answers]


def schema(door):
    """The definitions that `dev schema` prints."""
    return json.loads(subprocess.run([DEV, "schema", door], check=True, capture_output=True, text=True).stdout)


def must(condition, what):
    """Ends the judgement unless the condition holds."""
    if not condition:
        sys.exit(f"Refused: {what}")
