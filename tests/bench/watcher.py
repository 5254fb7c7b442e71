"""A browser that has the whole team open: counts what the websocket tells until it is ended. Prints the number of messages."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys

from websockets.asyncio.client import connect
from websockets.typing import Origin


async def main(port: int, session_key: str) -> None:
    origin = f"http://127.0.0.1:{port}"
    headers = {"Cookie": f"sessionid={session_key}"}
    count = 0
    async with connect(
        f"ws://127.0.0.1:{port}/ws/live/",
        additional_headers=headers,
        origin=Origin(origin),
        max_size=None,
    ) as socket:
        await socket.send(json.dumps({"subscribe": {"team": "bench"}}))
        said = json.loads(await socket.recv())
        sys.stdout.write(f"{said['type']}\n")
        sys.stdout.flush()
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            async for _ in socket:
                count += 1
    sys.stdout.write(f"{count}\n")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
