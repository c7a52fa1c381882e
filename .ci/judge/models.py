"""AWS's own service models judge what is sent to AWS: results of Converse, tool configurations, definitions of agents,
flows and gateway targets, and the session state after a return of control.

botocore checks names, types, required members, minimum lengths and unions before it sends a request; the service checks
the rest of the model. So this checks maximum lengths, patterns and enums too, from the same model.
"""

import json
import re

import botocore.session
from botocore.validate import ParamValidator

from programs import events, invoke, must, schema

SESSION = botocore.session.Session()
ARN = "arn:aws:lambda:us-east-1:123456789012:function:tools:live"


def faults(service, operation, request):
    """What the service's model has against a request."""
    shape = SESSION.get_service_model(service).operation_model(operation).input_shape
    found = ParamValidator().validate(request, shape).generate_report()
    return [found] * bool(found) + list(beyond(shape, request, operation))


def beyond(shape, value, path):
    """What botocore leaves to the service."""
    rules = shape.metadata
    if rules.get("document"):
        return
    if shape.type_name == "structure" and isinstance(value, dict):
        for name, inner in value.items():
            if name in shape.members:
                yield from beyond(shape.members[name], inner, f"{path}.{name}")
    elif shape.type_name == "list" and isinstance(value, list):
        for number, inner in enumerate(value):
            yield from beyond(shape.member, inner, f"{path}[{number}]")
    elif shape.type_name == "map" and isinstance(value, dict):
        for name, inner in value.items():
            yield from beyond(shape.key, name, f"{path} key {name}")
            yield from beyond(shape.value, inner, f"{path}.{name}")
    elif shape.type_name == "string" and isinstance(value, str):
        if shape.enum and value not in shape.enum:
            yield f"{path}: {value!r} is none of {shape.enum}"
        if "pattern" in rules and not re.fullmatch(rules["pattern"], value):
            yield f"{path}: {value!r} does not match {rules['pattern']}"
    if "max" in rules and isinstance(value, (str, list, dict)) and len(value) > rules["max"]:
        yield f"{path}: longer than {rules['max']}"


def accepted(service, operation, request, what):
    found = faults(service, operation, request)
    must(not found, f"{what}: {service} {operation}: {found}\n{json.dumps(request)[:2000]}")


# What stands where, in the two spellings of Converse's keys. What is in `json` is the tool's, and is left alone.
KEYS = ("ToolResult", "ToolUseId", "Status", "Content", "Text", "Json", "Role")


def in_the_apis_spelling(value):
    if isinstance(value, list):
        return [in_the_apis_spelling(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    spelt = {}
    for name, inner in value.items():
        name = name[0].lower() + name[1:] if name in KEYS else name
        spelt[name] = inner if name == "json" else in_the_apis_spelling(inner)
    return spelt


def results(answer):
    """The content blocks of an answer of the Converse door, whatever its form."""
    answer = in_the_apis_spelling(answer)
    if isinstance(answer, list):
        return answer
    if "role" in answer:
        must(answer["role"] == "user", f"results are the user's: {answer}")
        return answer["content"]
    return [answer if "toolResult" in answer else {"toolResult": answer}]


def has_dunder_type(value):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return isinstance(value, dict) and "__type" in value or any(map(has_dunder_type, inner))


def conversation(blocks):
    return {"modelId": "m", "messages": [{"role": "user", "content": blocks}]}


def converse_faults(blocks):
    """The model's objections, and those that the service has and its model does not tell."""
    found = faults("bedrock-runtime", "Converse", conversation(blocks))
    ids = [block["toolResult"].get("toolUseId") for block in blocks]
    if len(set(ids)) != len(ids):
        found.append("two results for one call")
    for block in blocks:
        result = block["toolResult"]
        content = result.get("content", [])
        if not content:
            found.append("no content")
        for part in content:
            if "json" in part and (not isinstance(part["json"], dict) or has_dunder_type(part["json"])):
                found.append(f"json that is no plain object: {part}")
            if "text" in part and not str(part["text"]).strip():
                found.append("a blank text")
    return found


def judge_converse():
    files, count = events("converse"), 0
    # Twice, so that there are replays.
    for file, answer in zip(files * 2, invoke(*files * 2)):
        blocks = results(answer) if answer is not None else []
        if blocks:
            found = converse_faults(blocks)
            must(not found, f"the answer to {file}: {found}\n{json.dumps(answer)}")
            count += len(blocks)
    must(count >= 60, f"only {count} results of Converse were there to judge")
    config = schema("converse")
    accepted("bedrock-runtime", "Converse", {"modelId": "m", "toolConfig": config}, "the toolConfig")
    return f"{count} results, {len(config['tools'])} tools of Converse"


def group(**more):
    executor = {"lambda": ARN}
    return {"agentId": "A" * 10, "agentVersion": "DRAFT", "actionGroupName": "tools", "actionGroupExecutor": executor, **more}


def judge_agents():
    functions, document = schema("agent-function"), schema("agent-openapi")
    accepted("bedrock-agent", "CreateAgentActionGroup", group(functionSchema=functions), "the functions")
    accepted(
        "bedrock-agent", "CreateAgentActionGroup", group(apiSchema={"payload": json.dumps(document)}), "the OpenAPI document"
    )
    states = 0
    for file, answer in zip(events("return-of-control"), invoke(*events("return-of-control"))):
        if answer is not None:
            request = {"agentId": "A" * 10, "agentAliasId": "B" * 10, "sessionId": "s-1", "sessionState": answer}
            accepted("bedrock-agent-runtime", "InvokeAgent", request, f"the answer to {file}")
            states += 1
    must(states >= 5, f"only {states} session states were there to judge")
    return f"{len(functions['functions'])} functions and {states} session states of agents"


def judge_flow():
    nodes = schema("flow")["nodes"]
    for node in nodes:
        node["configuration"]["lambdaFunction"]["lambdaArn"] = ARN
    role = "arn:aws:iam::123456789012:role/flow"
    accepted("bedrock-agent", "CreateFlow", {"name": "flow", "executionRoleArn": role, "definition": {"nodes": nodes}}, "the flow")
    return f"{len(nodes)} nodes of a flow"


def target(tools):
    configuration = {"mcp": {"lambda": {"lambdaArn": ARN, "toolSchema": {"inlinePayload": tools}}}}
    return {"gatewayIdentifier": "demo-gw-abcdefghij", "name": "orders", "targetConfiguration": configuration}


def judge_gateway():
    tools = schema("gateway")
    accepted("bedrock-agentcore-control", "CreateGatewayTarget", target(tools), "the gateway's target")
    return f"{len(tools)} tools of a gateway's target"


def judge_the_judges():
    """A judge that refuses nothing is none."""
    result = lambda **parts: [{"toolResult": {"toolUseId": "t1", "status": "success", "content": [{"text": "x"}], **parts}}]
    must(not converse_faults(result()), "the sample is legal, but was refused")
    for broken in [
        result(toolUseId="no blanks"),
        result(toolUseId="x" * 65),
        result(status="failed"),
        result(content=[]),
        result(content=[{"text": " "}]),
        result(content=[{"json": [1]}]),
        result(content=[{"json": {"a": {"__type": 1}}}]),
        result(content=[{"text": "x", "json": {}}]),
        result(replayed=True),
        result() * 2,
    ]:
        must(converse_faults(broken), f"a broken result was taken: {broken}")
    function = {"name": "get_order", "parameters": {"order": {"type": "object"}}}
    must(faults("bedrock-agent", "CreateAgentActionGroup", group(functionSchema={"functions": [function]})), "an object was taken")
    bounded = {"name": "t", "description": "t", "inputSchema": {"type": "integer", "minimum": 1}}
    must(faults("bedrock-agentcore-control", "CreateGatewayTarget", target([bounded])), "a minimum was taken")


if __name__ == "__main__":
    judge_the_judges()
    for judge in (judge_converse, judge_agents, judge_flow, judge_gateway):
        print(f"AWS's models take {judge()}.")
