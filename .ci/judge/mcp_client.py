"""The official MCP client lists and calls the tools, once with the old handshake and once without one (2026-07-28)."""

import asyncio
import os
import sys
import tempfile

from mcp import Client, MCPError, StdioServerParameters

from programs import must

# Those of the demo; there may be others.
TOOLS = ["create_shipping_label", "get_order", "refund_order", "search_orders", "send_email"]
REFUND = {"order_id": "ORD-12345", "amount_cents": 1500, "reason": "late"}


async def talk(mode, version, database):
    bridge = os.path.join(os.path.dirname(__file__), "mcp_bridge.py")
    environment = {name: os.environ[name] for name in ("PATH", "CARGO_TARGET_DIR") if name in os.environ}
    server = StdioServerParameters(command=sys.executable, args=[bridge, database], env=environment)
    async with Client(server, mode=mode, read_timeout_seconds=60) as client:
        must(client.protocol_version == version, f"{client.protocol_version} was agreed on instead of {version}")
        must(client.server_capabilities.tools is not None, "no tools are offered")
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        must(set(TOOLS) <= set(tools), f"the list has {list(tools)}")
        must(tools["get_order"].annotations.read_only_hint is True, "a read is not told as one")
        must(tools["send_email"].annotations.idempotent_hint is False, "an e-mail is told as idempotent")

        order = await client.call_tool("get_order", {"order_id": "ORD-12345"})
        must(not order.is_error and order.structured_content["order_id"] == "ORD-12345", f"the order is {order}")
        must('"ORD-12345"' in order.content[0].text, f"the order's text is {order.content}")

        first, second = [await client.call_tool("refund_order", REFUND) for _ in range(2)]
        must(not first.is_error and first.structured_content == second.structured_content, f"{first}, then {second}")
        must(len(second.content) == 2, "a replay does not say that it is one")

        refused = await client.call_tool("get_order", {"order_id": "12345"})
        must(refused.is_error and "ORD-12345" in refused.content[0].text, f"the refusal is {refused}")
        try:
            unknown = await client.call_tool("no_tool", {})
            must(False, f"an unknown tool was answered: {unknown}")
        except MCPError as error:
            must(error.error.code == -32602, f"an unknown tool is the error {error.error}")


for mode, version in (("legacy", "2025-11-25"), ("auto", "2026-07-28")):
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(talk(mode, version, os.path.join(folder, "orders.db")))
    print(f"The MCP client lists and calls the tools in version {version}.")
