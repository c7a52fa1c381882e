"""MCP over stdio, for clients that cannot call a Lambda function: each line that comes in becomes one invocation, and
each answer one line that goes out. A notification has no answer. All invocations share the database in argv[1].
"""

import subprocess
import sys

from programs import DEV

for line in sys.stdin:
    done = subprocess.run([DEV, "invoke", "--db", sys.argv[1], "-"], input=line, capture_output=True, text=True)
    answer = done.stdout.strip()
    if answer and answer != "null":
        print(answer, flush=True)
