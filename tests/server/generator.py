"""Load from one thread: closed loop (so many clients, each asks again once it is answered) and open loop (requests at
fixed times, whatever the answers do). Requests are bytes made before; answers are kept and looked at afterwards, so that
the generator takes as little as it can of the processors that it shares with the server."""
import asyncio
import random
import time
from dataclasses import dataclass


@dataclass
class Reply:
    index: int           # of the request
    status: int = 0      # 0: no answer
    body: bytes = b""
    at: float = 0        # when it was complete
    retry_after: str = ""
    num_tries: int = 0
    error: str = ""


class Client:
    """A connection that stays open from one request to the next."""

    def __init__(self, port):
        self.port = port
        self.writer = None

    async def ask(self, data):
        """(status, body, Retry-After)"""
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.writer.write(data)
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        if headers.get("transfer-encoding") == "chunked":
            body = await self.read_chunks()
        else:
            body = await self.reader.readexactly(int(headers["content-length"]))
        if headers.get("connection") == "close":
            self.close()
        return int(lines[0].split(" ")[1]), body, headers.get("retry-after", "")

    async def read_chunks(self):
        pieces = []
        while size := int(await self.reader.readline(), 16):
            pieces.append((await self.reader.readexactly(size + 2))[:-2])
        await self.reader.readexactly(2)
        return b"".join(pieces)

    def close(self):
        if self.writer is not None:
            self.writer.close()
        self.writer = None


async def ask_once(client, requests, index):
    reply = Reply(index)
    try:
        reply.status, reply.body, reply.retry_after = await client.ask(requests[index])
    except (OSError, EOFError, ValueError, KeyError) as error:
        reply.error = repr(error)
        client.close()
    reply.at, reply.num_tries = time.monotonic(), 1
    return reply


async def _closed_loop(port, requests, num_clients, seconds):
    end, replies, order = time.monotonic() + seconds, [], iter(range(1 << 60))

    async def work():
        client = Client(port)
        while time.monotonic() < end:
            replies.append(await ask_once(client, requests, next(order) % len(requests)))
        client.close()

    await asyncio.gather(*(work() for _ in range(num_clients)))
    return replies


async def _open_loop(port, requests, rate, seconds):
    """A client that is refused waits as Retry-After says, and asks once more if the time is not over by then."""
    idle, replies, tasks = [], [], []
    begin = time.monotonic()
    end = begin + seconds

    async def offer(index):
        client = idle.pop() if idle else Client(port)
        reply = await ask_once(client, requests, index)
        if reply.status == 429 and reply.retry_after.isdigit():
            pause = int(reply.retry_after) * random.uniform(1, 1.2)
            if time.monotonic() + pause < end:
                await asyncio.sleep(pause)
                reply = await ask_once(client, requests, index)
                reply.num_tries = 2
        idle.append(client)
        replies.append(reply)

    count = 0
    while (now := time.monotonic()) < end:
        while begin + count / rate <= now:
            tasks.append(asyncio.create_task(offer(count % len(requests))))
            count += 1
        await asyncio.sleep(max(0.001, begin + count / rate - time.monotonic()))
    await asyncio.gather(*tasks)
    for client in idle:
        client.close()
    return replies, count


def closed_loop(port, requests, num_clients, seconds):
    return asyncio.run(_closed_loop(port, requests, num_clients, seconds))


def open_loop(port, requests, rate, seconds):
    """(replies, how many were offered)"""
    return asyncio.run(_open_loop(port, requests, rate, seconds))
