"""boto3's Lambda client invokes the real program. Between the two stands the Lambda service, as far as they see it: the
Invoke API on the one side, the Runtime API on the other.
"""

import base64
import json
import os
import queue
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import boto3
from botocore.config import Config

from programs import DEV, FUNCTION, must

CONTEXT = {
    "custom": {
        "bedrockAgentCoreToolName": "orders___get_order",
        "bedrockAgentCoreMessageVersion": "1.0",
        # lambda_runtime's own loop ends at the object here.
        "bedrockAgentCorePropagatedHeaders": {"authorization": "Bearer SECRET"},
    }
}


class Service(ThreadingHTTPServer):
    """The invocations that wait for the program, and those that wait for its answer."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Exchange)
        self.waiting, self.answers, self.count = queue.Queue(), {}, 0

    def address(self):
        return f"127.0.0.1:{self.server_address[1]}"


class Exchange(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        whole = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return whole

    def reply(self, status, headers, body):
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        """The program asks for its next invocation."""
        number, payload, headers = self.server.waiting.get()
        common = {
            "lambda-runtime-aws-request-id": number,
            "lambda-runtime-deadline-ms": str(int(time.time() * 1000) + 10_000),
            "lambda-runtime-invoked-function-arn": "arn:aws:lambda:us-east-1:123456789012:function:tools",
        }
        self.reply(200, {**common, **headers}, payload)

    def do_POST(self):
        body = self.body()
        if self.path.startswith("/2018-06-01/runtime/invocation/"):
            *_, number, kind = self.path.split("/")
            self.server.answers.pop(number).put((kind, body))
            self.reply(202, {}, b"{}")
        elif self.path.endswith("/invocations"):
            self.invoke(body)
        else:
            self.reply(404, {}, b"{}")

    def invoke(self, payload):
        """A client invokes the function: `POST /2015-03-31/functions/NAME/invocations`."""
        self.server.count += 1
        number, answer, headers = f"r-{self.server.count}", queue.Queue(), {}
        if "x-amz-client-context" in self.headers:
            context = base64.b64decode(self.headers["x-amz-client-context"], validate=True)
            headers["lambda-runtime-client-context"] = context.decode()
        self.server.answers[number] = answer
        self.server.waiting.put((number, payload, headers))
        kind, body = answer.get(timeout=30)
        self.reply(200, {"x-amz-function-error": "Unhandled"} if kind == "error" else {}, body)


def settings(lines):
    """What `dev dynamodb` prints: `export NAME=VALUE …` on each line."""
    pairs = [pair.split("=", 1) for line in lines for pair in line.removeprefix("export ").split()]
    return dict(pairs)


def judge(client):
    def invoke(event, context=None):
        more = {}
        if context is not None:
            more["ClientContext"] = base64.b64encode(json.dumps(context).encode()).decode()
        answer = client.invoke(FunctionName="tools", Payload=json.dumps(event), **more)
        return answer.get("FunctionError"), json.loads(answer["Payload"].read())

    failed, answer = invoke({"order_id": "ORD-12345"}, CONTEXT)
    must(not failed and answer["ok"] is True, f"through the gateway: {answer}")
    must(answer["result"]["order_id"] == "ORD-12345", f"the order is {answer}")
    failed, answer = invoke({"order_id": "ORD-12345"}, {"custom": {"bedrockAgentCoreToolName": "orders___no_tool"}})
    must(not failed and answer["error"]["kind"] == "unknown_tool", f"an unknown tool is {answer}")
    with open("events/converse/refund-order.json") as file:
        refund = json.load(file)
    (_, first), (_, second) = invoke(refund), invoke(refund)
    must(first["toolResult"]["status"] == "success", f"the refund is {first}")
    must(first["toolResult"]["content"][0] == second["toolResult"]["content"][0], f"{first}, then {second}")
    must(len(second["toolResult"]["content"]) == 2, "a replay does not say that it is one")
    failed, answer = invoke({"no": "call"})
    must(failed == "Unhandled" and answer["errorType"] == "NotAToolCall", f"no tool call is {answer}")
    failed, answer = invoke({"order_id": "ORD-12345"}, "no object")
    must(failed and answer["errorType"] == "InvalidClientContext", f"a bad client context is {answer}")
    failed, answer = invoke({"order_id": "ORD-12345"}, CONTEXT)
    must(not failed and answer["ok"] is True, "the program did not live on")


service = Service()
threading.Thread(target=service.serve_forever, daemon=True).start()
database = subprocess.Popen([DEV, "dynamodb", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
function = None
try:
    environment = settings([database.stdout.readline() for _ in range(4)])
    environment |= {"AWS_LAMBDA_RUNTIME_API": service.address(), "AWS_LAMBDA_FUNCTION_NAME": "tools"}
    function = subprocess.Popen([FUNCTION], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    config = Config(retries={"total_max_attempts": 1}, read_timeout=40)
    judge(boto3.client("lambda", region_name="us-east-1", endpoint_url=f"http://{service.address()}", config=config))
finally:
    for program in (function, database):
        if program is not None:
            program.kill()
output = function.communicate()[0]
must("SECRET" not in output, "a propagated header is in the log")
must('"_aws"' in output, f"there are no metrics: {output[:500]}")
print("boto3 invokes the function, with and without a client context.")
