"""Drives tenure's MCP server with the official Python SDK.

    drive.py MODE stdio TENURE STORE
    drive.py MODE http URL [TOKEN]

MODE is `legacy` (with the initialize handshake) or `auto` (whatever is newest). Says `fine` at the end.
"""

import asyncio
import json
import sys

import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

TOOLS = {
    "create_task", "create_tasks_batch", "claim_task", "complete_task", "fail_task", "heartbeat",
    "get_task", "add_note", "update_task", "review_task", "retry_task",
    "get_status", "get_all_tasks", "get_results", "acquire_lock", "release_lock", "who_holds",
}


class Agent:
    """A client that passes on the session which it was given, as a model would."""

    def __init__(self, client):
        self.client = client
        self.session = None

    async def ask(self, tool, progress=None, **arguments):
        if self.session:
            arguments["session"] = self.session
        result = await self.client.call_tool(tool, arguments, progress_callback=progress)
        answer = result.structured_content
        assert json.loads(result.content[0].text) == answer, "the text is not the structure"
        for word in ("force", "break"):
            assert word not in result.content[0].text.lower(), answer
        self.session = answer.get("session", self.session)
        return answer, bool(result.is_error)

    async def do(self, tool, progress=None, **arguments):
        answer, refused = await self.ask(tool, progress, **arguments)
        assert not refused and answer["success"], (tool, arguments, answer)
        return answer

    async def wait(self, tool, **arguments):
        """Starts to wait, and returns once the server said that it does."""
        begun, messages = asyncio.Event(), []

        async def progress(progress, total, message):
            messages.append(message)
            begun.set()

        waiting = asyncio.ensure_future(self.ask(tool, progress, wait_seconds=120, **arguments))
        said = asyncio.ensure_future(begun.wait())
        await asyncio.wait([waiting, said], return_when=asyncio.FIRST_COMPLETED)
        assert begun.is_set(), (tool, "ended without a wait", waiting.result())
        return waiting, messages


async def tasks(a, b):
    first = (await a.do("create_task", description="Write the parser\nAll of it.", priority=1,
                        context_files=["docs/grammar.md"], hints="start small"))["task_id"]
    batch = await a.do("create_tasks_batch", tasks=[
        {"id": "test-it", "description": "Test the parser", "dependencies": [first]},
        {"id": "ship-it", "description": "Ship the parser", "dependencies": ["test-it"]},
    ])
    assert batch["task_ids"] == ["test-it", "ship-it"], batch

    claimed = (await a.do("claim_task", agent_id="alice"))["task"]
    assert claimed["id"] == first and claimed["title"] == "Write the parser", claimed
    assert claimed["payload"] == {"context_files": ["docs/grammar.md"], "hints": "start small"}
    assert claimed["claimed_by"].startswith("alice/"), claimed
    answer, refused = await b.ask("claim_task", agent_id="alice")
    assert not refused and not answer["success"] and answer["retry_after_seconds"] > 0, answer
    answer, refused = await b.ask("complete_task", agent_id="alice", task_id=first, output="mine!")
    assert refused and answer["code"] == "NOT_YOURS", answer

    holding = (await a.do("heartbeat"))["holding"]
    assert [hold["resource"] for hold in holding] == [f"task:{first}"], holding
    await a.do("complete_task", task_id=first, output="parsed", files_created=["parser.py"])
    results = (await b.do("get_results", task_ids=[first]))["results"]
    assert results[0]["result"] == {"output": "parsed", "files_created": ["parser.py"]}, results
    status = await b.do("get_status")
    assert status["tasks"]["completed"] == 1 and status["total"] == 3, status

    await b.do("claim_task", task_id="test-it")
    failed = await b.do("fail_task", task_id="test-it", error="no compiler", retry=False)
    assert failed["status"] == "failed", failed
    listed = (await a.do("get_all_tasks", status_filter="failed"))["tasks"]
    assert [task["id"] for task in listed] == ["test-it"], listed


async def waiting_for_tasks(a, b):
    waiting, messages = await a.wait("claim_task")
    await b.do("create_task", id="late", description="Came late")
    answer, _ = await waiting
    assert answer["task"]["id"] == "late", answer
    assert "Waiting for a task" in messages[0], messages
    if answer.get("session"):
        a.session = answer["session"]
    await a.do("release_lock", resources=["task:late"])

    await b.do("claim_task", task_id="late")
    await b.do("complete_task", task_id="late")
    waiting, _ = await a.wait("claim_task")
    waiting.cancel()
    await b.do("create_task", id="later", description="Came later still")
    await b.do("claim_task", task_id="later", wait_seconds=60)
    await b.do("complete_task", task_id="later")


async def locks(a, b):
    lease = await a.do("acquire_lock", resources=["deploy"], operation="rollout")
    again = await a.do("acquire_lock", resources=["deploy"], operation="rollout")
    assert (lease["reason"], again["reason"]) == ("acquired_new", "already_owned"), again
    assert lease["token"] == again["token"]
    answer, refused = await b.ask("acquire_lock", resources=["deploy"])
    assert not refused and not answer["success"] and "rollout" in answer["message"], answer
    answer, refused = await b.ask("release_lock", resources=["deploy"])
    assert refused and answer["code"] == "NOT_HELD", answer

    waiting, messages = await b.wait("acquire_lock", resources=["deploy"])
    assert "rollout" in messages[0] and "you are next" in messages[0], messages
    held = await a.do("who_holds", resources=["deploy"])
    assert held["holds"][0]["yours"] and len(held["waiting"]) == 1, held
    await a.do("release_lock")
    answer, _ = await waiting
    assert answer["success"], answer
    if answer.get("session"):
        b.session = answer["session"]

    waiting, _ = await a.wait("acquire_lock", resources=["deploy"])
    waiting.cancel()
    while (await b.do("who_holds", resources=["deploy"]))["waiting"]:
        await asyncio.sleep(0.05)
    await b.do("release_lock", resources=["deploy"])


async def resources(a):
    listed = await a.client.list_resources()
    uris = {str(resource.uri) for resource in listed.resources}
    assert uris == {"coordination://status", "coordination://tasks"}, uris
    for uri, part in ("coordination://status", "total"), ("coordination://tasks", "tasks"):
        contents = (await a.client.read_resource(uri)).contents
        assert part in json.loads(contents[0].text), contents


async def drive(connect, sessionless):
    async with connect() as one:
        a = Agent(one)
        async with connect() as two:
            b = Agent(two)
            for client in one, two:
                listed = {tool.name for tool in (await client.list_tools()).tools}
                assert listed == TOOLS, listed
            await tasks(a, b)
            await waiting_for_tasks(a, b)
            await locks(a, b)
            await resources(a)
            assert bool(a.session) == sessionless, a.session
            await b.do("acquire_lock", resources=["left-behind"])
            if b.session:
                # Nobody says goodbye where there are no sessions.
                await b.do("release_lock")
        # What the other held went with its session.
        await a.do("acquire_lock", resources=["left-behind"], wait_seconds=60)


def main():
    mode, how, *rest = sys.argv[1:]
    info = types.Implementation(name="python-sdk", version="1")

    def connect():
        if how == "stdio":
            tenure, store = rest
            server = StdioServerParameters(command=tenure, args=["--store", store, "mcp"])
        elif len(rest) == 2:
            import httpx2
            headers = {"Authorization": f"Bearer {rest[1]}"}
            server = streamable_http_client(rest[0], http_client=httpx2.AsyncClient(headers=headers))
        else:
            server = rest[0]
        return Client(server, mode=mode, client_info=info)

    asyncio.run(drive(connect, sessionless=(mode, how) == ("auto", "http")))
    print("fine")


if __name__ == "__main__":
    main()
