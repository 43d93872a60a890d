"""Call Vedette's search tool as an agent would, over the Model Context Protocol.

    python examples/mcp_client.py http://127.0.0.1:8080 vk_YOUR_KEY "consumer lag"

Create the key with ``vedette keys create assistant``.
"""

import asyncio
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def search(server: str, key: str, query: str) -> None:
    """List the tools of a server, and print what its search finds."""
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(headers=headers, trust_env=False) as http:
        transport = streamable_http_client(f"{server.rstrip('/')}/mcp", http_client=http)
        async with Client(transport) as client:
            tools = await client.list_tools()
            print(f"tools: {', '.join(tool.name for tool in tools.tools)}")
            answer = await client.call_tool("search", {"query": query})
            for result in answer.structured_content["results"]:
                print(f"{result['title']}  {result['url']}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    asyncio.run(search(*sys.argv[1:]))
