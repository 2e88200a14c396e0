"""An agent whose server is restarted while it works.

    restart.py MODE URL FOLDER

MODE is as for drive.py. Makes FOLDER/held once it holds something, and goes on when somebody has made
FOLDER/restarted. Says `fine` at the end.
"""

import asyncio
import pathlib
import sys

from drive import Agent
from mcp import Client


async def work(client, idle, folder):
    agent, idle = Agent(client), Agent(idle)
    await idle.do("get_status")
    await agent.do("create_task", id="build", description="Build it", section="s")
    await agent.do("claim_task")
    lease = await agent.do("acquire_lock", resources=["deploy"])
    (folder / "held").touch()
    while not (folder / "restarted").exists():
        await asyncio.sleep(0.05)
    # One that held nothing goes on as well.
    status = await idle.do("get_status")
    assert "still_yours" not in status and status["tasks"]["in_progress"] == 1, status
    beat = await agent.do("heartbeat")
    assert sorted(beat["still_yours"]) == ["deploy", "task:build"], beat
    again = await agent.do("acquire_lock", resources=["deploy"])
    assert (again["reason"], again["token"]) == ("already_owned", lease["token"]), again
    assert "still_yours" not in again, again
    await agent.do("complete_task", task_id="build")
    await agent.do("release_lock")
    answer, refused = await agent.ask("release_lock", resources=["deploy"])
    assert refused and answer["code"] == "NOT_HELD", answer


async def main():
    mode, url, folder = sys.argv[1:]
    async with Client(url, mode=mode) as client, Client(url, mode=mode) as idle:
        await work(client, idle, pathlib.Path(folder))
    print("fine")


asyncio.run(main())
