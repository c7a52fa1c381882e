"""AWS's own service model judges the requests that the agent's loop sends. `dev chat` talks to a model that this file
plays, in event-stream frames of its own making, and that asks for all a model should not ask for; all of its requests are
judged. So is a sample of what random models bring the loop to send, which the loop's own tests leave behind.
"""

import json
import os
import struct
import subprocess
import tempfile
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from models import faults
from programs import DEV, must


def call(number, name, **arguments):
    return {"toolUse": {"toolUseId": f"t-{number}", "name": name, "input": arguments}}


def of_provider(number):
    """A call that the provider runs, and must not be run by us."""
    return {"toolUse": {"toolUseId": f"s-{number}", "name": "web_search", "input": {}, "type": "server_tool_use"}}


def found_by_provider(number):
    result = {"toolUseId": f"s-{number}", "status": "success", "type": "web_search_result", "content": [{"text": "Rain."}]}
    return {"toolResult": result}


REFUND = {"order_id": "ORD-12345", "amount_cents": 1500, "reason": "damaged"}
# Each is one answer of the model; None ends the turn with a text.
ANSWERS = [
    [call(1, "get_order", order_id="ORD-12345"), call(2, "refund_order", **REFUND), call(3, "no_tool"), call(4, "get_order")],
    # The same id twice, blank text, reasoning with its signature and without, calls that failed before.
    [{"text": ""}, {"reasoning": "Hm."}, call(5, "get_order"), call(5, "get_order", order_id="ORD-00000"), {"redacted": "AAEC"}],
    [call(1, "get_order", order_id="ORD-00000"), call(7, "get_order", order_id="ORD-00000")],
    [call(8, "search_orders", customer_id="C-1", limit=1.0, tags=["gift"])],
    # What the provider has run, what it has not ended, and a result that nobody asked for.
    [of_provider(1), found_by_provider(1), of_provider(2), found_by_provider(3), call(9, "search_orders", customer_id="C-1")],
    None,
    # Nothing but failures, until the tool is withdrawn, or the loop ends.
    *[[call(number, "create_shipping_label", order_id="ORD-99999", carrier="dhl")] for number in range(20, 32)],
    None,
    [call(40 + number, "search_orders", customer_id=f"C-{number}") for number in range(30)],
    None,
]


def frame(event, payload):
    headers = b""
    for name, value in {":event-type": event, ":content-type": "application/json", ":message-type": "event"}.items():
        headers += bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
    body = json.dumps(payload).encode()
    prelude = struct.pack(">II", len(headers) + len(body) + 16, len(headers))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + body
    return message + struct.pack(">I", zlib.crc32(message))


def stream(blocks):
    """An answer in pieces: the indexes of two calls alternate."""
    yield frame("messageStart", {"role": "assistant"})
    deltas = []
    for index, block in enumerate(blocks or [{"text": "That is all."}]):
        if "toolUse" in block:
            use = block["toolUse"]
            start = {"toolUse": {name: use[name] for name in ("toolUseId", "name", "type") if name in use}}
            yield frame("contentBlockStart", {"contentBlockIndex": index, "start": start})
            text = json.dumps(use["input"]) if use["input"] else ""
            deltas += [(at, index, {"toolUse": {"input": text[at : at + 5]}}) for at in range(0, len(text), 5)]
        elif "toolResult" in block:
            result = block["toolResult"]
            start = {"toolResult": {name: result[name] for name in ("toolUseId", "status", "type")}}
            yield frame("contentBlockStart", {"contentBlockIndex": index, "start": start})
            deltas += [(0, index, {"toolResult": result["content"]})]
        elif "reasoning" in block:
            deltas += [(0, index, {"reasoningContent": {"text": block["reasoning"]}})]
            deltas += [(1, index, {"reasoningContent": {"signature": "c2ln"}})]
        elif "redacted" in block:
            deltas += [(0, index, {"reasoningContent": {"redactedContent": block["redacted"]}})]
        else:
            deltas += [(0, index, {"text": block["text"]})]
    for _, index, delta in sorted(deltas, key=lambda piece: piece[:2]):
        yield frame("contentBlockDelta", {"contentBlockIndex": index, "delta": delta})
    for index in range(len(blocks or [0])):
        yield frame("contentBlockStop", {"contentBlockIndex": index})
    yield frame("messageStop", {"stopReason": "tool_use" if blocks else "end_turn"})
    yield frame("metadata", {"usage": {"inputTokens": 9, "outputTokens": 9, "totalTokens": 18}, "metrics": {"latencyMs": 1}})


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.requests.append(request)
        number = len(self.server.requests) - 1
        answer = ANSWERS[number] if number < len(ANSWERS) else None
        body = b"".join(stream(answer))
        self.send_response(200)
        self.send_header("content-type", "application/vnd.amazon.eventstream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def ids(message, block):
    return [part[block]["toolUseId"] for part in message["content"] if block in part]


def of_servers(message):
    uses = [part["toolUse"] for part in message["content"] if "toolUse" in part]
    return [use["toolUseId"] for use in uses if use.get("type") == "server_tool_use"]


def service_faults(request):
    """What the service refuses and its model does not tell."""
    messages = request["messages"]
    for index, message in enumerate(messages):
        if message["role"] != ("assistant" if index % 2 else "user"):
            yield f"message {index} is of the wrong role"
        if any("text" in part and not part["text"].strip() for part in message["content"]) or not message["content"]:
            yield f"message {index} is blank"
        asked, answered = ids(message, "toolUse"), ids(messages[index + 1], "toolResult") if index + 1 < len(messages) else []
        if asked and not index % 2:
            yield f"message {index} asks {asked}, and is the person's"
        if len(set(asked)) != len(asked):
            yield f"message {index} has an id twice"
        own, of_server = ids(message, "toolResult"), of_servers(message)
        if index % 2 and sorted(own) != sorted(of_server):
            yield f"message {index} has the provider's calls {of_server} and results {own}"
        elif index % 2 and sorted(set(asked) - set(of_server)) != sorted(answered):
            yield f"message {index} asks {asked}, and is answered {answered}"
        if any(not isinstance(part["toolUse"]["input"], dict) for part in message["content"] if "toolUse" in part):
            yield f"message {index} has arguments that are no object"
    if any(ids(message, "toolUse") for message in messages) and not request.get("toolConfig"):
        yield "there are calls, and no toolConfig"


def objections(request):
    return faults("bedrock-runtime", "ConverseStream", {"modelId": "m", **request}) + list(service_faults(request))


def judge_the_judge():
    """A judge that refuses nothing is none."""
    def said(*roles_and_blocks):
        return {"messages": [{"role": role, "content": list(blocks)} for role, *blocks in roles_and_blocks]}

    hello, use = ("user", {"text": "x"}), {"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}
    must(not objections(said(hello)), "a legal request was refused")
    for broken in [
        said(hello, ("assistant", use), ("user", {"text": "x"})),
        said(hello, hello),
        said(hello, ("assistant", of_provider(1)), ("user", {"text": "x"})),
        said(hello, ("assistant", {"text": "x"}, found_by_provider(1)), ("user", {"text": "x"})),
        said(("user", {"text": " "})),
        said(("user",)),
        said(("user", {"words": "x"})),
        {**said(hello), "inferenceConfig": {"maxTokens": 0}},
        {**said(hello), "toolConfig": {"tools": []}},
    ]:
        must(objections(broken), f"a broken request was taken: {broken}")


def left_by_the_tests():
    """The requests of random conversations, one a line, as `tests/agent_loop/sample.rs` leaves them."""
    with tempfile.TemporaryDirectory() as folder:
        left = os.path.join(folder, "requests")
        test = ["cargo", "test", "--quiet", "--test", "agent_loop", "requests_of_random_conversations"]
        done = subprocess.run(test, env={**os.environ, "LOOP_REQUESTS": left}, capture_output=True, text=True)
        must(done.returncode == 0, f"the loop's test failed:\n{done.stdout}\n{done.stderr}")
        must(os.path.exists(left), "the loop's test has left no requests")
        with open(left) as lines:
            return [json.loads(line) for line in lines]


def judge(requests, origin):
    for number, request in enumerate(requests):
        found = objections(request)
        must(not found, f"request {number} of {origin}: {found}\n{json.dumps(request)[:4000]}")


judge_the_judge()
service = ThreadingHTTPServer(("127.0.0.1", 0), Model)
service.requests = []
threading.Thread(target=service.serve_forever, daemon=True).start()
environment = {**os.environ, "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": f"http://127.0.0.1:{service.server_address[1]}"}
lines = "".join(f"Message {number}.\n" for number in range(1, 5))
done = subprocess.run(
    [DEV, "chat", "--model", "m"], input=lines, env=environment, capture_output=True, text=True, timeout=120
)
must(done.returncode == 0, f"dev chat ended with {done.returncode}:\n{done.stderr}")
judge(service.requests, "dev chat")
must(len(service.requests) >= 15, f"only {len(service.requests)} requests were there to judge:\n{done.stderr}")
blocks = json.dumps(service.requests)
must('"s-1"' in blocks and "web_search_result" in blocks, "what the provider has run is not given back as it came")
must('"signature": "c2ln"' in blocks and '"redactedContent": "AAEC"' in blocks, "reasoning is not given back as it came")
sample = left_by_the_tests()
must(sample, "no request of a random conversation was there to judge")
judge(sample, "the random conversations")
print(f"AWS's models take {len(service.requests)} requests of the loop, and {len(sample)} of random conversations.")
