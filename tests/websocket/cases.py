"""Python's websockets against the echo server of WEBSOCKET_ECHO. A line a case: `ok NAME`, `FAIL NAME: why`."""
import asyncio
import contextlib
import os
import subprocess
import sys
import time
import traceback
import urllib.request

import websockets
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect as connect_sync

KIB = 1 << 10


@contextlib.contextmanager
def echo_server(ping_ms=20000):
    process = subprocess.Popen([os.environ["WEBSOCKET_ECHO"], str(ping_ms)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        process.port = int(process.stdout.readline())
        yield process
    finally:
        process.stdin.close()
        process.wait(timeout=30)
        process.stdout.close()


def url(server, path="/echo"):
    return f"ws://127.0.0.1:{server.port}{path}"


async def closed_with(socket):
    """The code and the reason that the server sends."""
    try:
        while True:
            await asyncio.wait_for(socket.recv(), 30)
    except ConnectionClosed as why:
        return why.rcvd and (why.rcvd.code, why.rcvd.reason)


async def messages_come_back_as_they_were(server):
    async with connect(url(server)) as socket:
        for message in ("", "a", "\u20ac\U0001f600" * 1000, b"", bytes(range(256)), "x" * 125, "x" * 126, b"\0" * (64 * KIB)):
            await socket.send(message)
            assert await socket.recv() == message


async def its_offer_of_compression_is_passed_over(server):
    async with connect(url(server), compression="deflate") as socket:
        assert socket.response.headers.get("Sec-WebSocket-Extensions") is None
        assert "Beast" not in socket.response.headers.get("Server", "")
        await socket.send("x" * 1000)
        assert await socket.recv() == "x" * 1000


async def fragments_are_joined(server):
    async with connect(url(server)) as socket:
        await socket.send(["a", "", "\u20ac" * 5000, "z"])
        assert await socket.recv() == "a" + "\u20ac" * 5000 + "z"
        await socket.send([b"\xe2", b"\x82"])
        assert await socket.recv() == b"\xe2\x82"


async def a_subprotocol_is_chosen(server):
    async with connect(url(server), subprotocols=["x", "echo"]) as socket:
        assert socket.subprotocol == "echo"
    async with connect(url(server)) as socket:
        assert socket.subprotocol is None
    for offers in (["other"], ["Echo"], ["n" + str(i) for i in range(2000)]):
        try:
            async with connect(url(server), subprotocols=offers):
                raise AssertionError(f"{offers[:3]} was served")
        except InvalidStatus as why:
            assert why.response.status_code in (400, 431), why.response


async def pings_are_answered(server):
    async with connect(url(server), ping_interval=None) as socket:
        for data in (b"", b"x" * 125):
            assert await asyncio.wait_for(await socket.ping(data), 10) >= 0


async def the_servers_pings_keep_a_silent_client(server):
    with echo_server(ping_ms=100) as quick:
        async with connect(url(quick), ping_interval=None) as socket:
            await asyncio.sleep(1)
            await socket.send("still here")
            assert await socket.recv() == "still here"


async def the_limit_is_exact(server):
    async with connect(url(server)) as socket:
        await socket.send("x" * (64 * KIB))
        assert len(await socket.recv()) == 64 * KIB
        await socket.send("x" * (64 * KIB + 1))
        assert (await closed_with(socket))[0] == 1009
    async with connect(url(server)) as socket:
        try:
            await socket.send(["x" * (32 * KIB)] * 3)
        except ConnectionClosed:
            pass
        assert (await closed_with(socket))[0] == 1009


async def wrong_text_closes(server):
    async with connect(url(server)) as socket:
        await socket.send(b"\xff\xfe", text=True)
        assert (await closed_with(socket))[0] == 1007


async def the_client_closes(server):
    for code in (1000, 1001, 3000, 4999):
        socket = await connect(url(server))
        await socket.close(code, "bye")
        assert socket.close_code == code, socket.close_code


async def the_server_closes(server):
    async with connect(url(server)) as socket:
        await socket.send("close 4001 warum nicht \u20ac")
        assert await closed_with(socket) == (4001, "warum nicht \u20ac")


async def what_the_client_limits_closes_one_connection(server):
    async with connect(url(server), max_size=1000) as socket, connect(url(server)) as other:
        await socket.send("push 1 1001")
        try:
            await socket.recv()
        except ConnectionClosed as why:
            assert why.sent.code == 1009
        await other.send("alive")
        assert await other.recv() == "alive"


async def a_slow_reader_gets_all_of_it(server):
    async with connect(url(server), max_queue=1) as socket:
        await socket.send("push 50 60000")
        await asyncio.sleep(0.3)
        for _ in range(50):
            assert len(await socket.recv()) == 60000


async def a_paused_server_reads_all_of_it_later(server):
    async with connect(url(server), ping_interval=None) as socket:
        await socket.send("pause 500")
        start = time.monotonic()
        sending = asyncio.create_task(send_many(socket))
        assert len(await socket.recv()) == 60000
        assert time.monotonic() - start >= 0.4
        for _ in range(199):
            assert len(await socket.recv()) == 60000
        await sending


async def send_many(socket):
    for _ in range(200):
        await socket.send(b"x" * 60000)


async def many_at_once_get_their_own(server):
    async def one(number):
        async with connect(url(server)) as socket:
            for i in range(20):
                await socket.send(f"{number} {i}")
                assert await socket.recv() == f"{number} {i}"
    await asyncio.gather(*(one(number) for number in range(100)))


async def the_synchronous_client_works(server):
    def talk():
        with connect_sync(url(server)) as socket:
            socket.send("hello")
            return socket.recv()
    assert await asyncio.to_thread(talk) == "hello"


async def http_is_beside_it(server):
    def ask(path):
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}") as reply:
            return reply.status
    assert await asyncio.to_thread(ask, "/other") == 200
    try:
        async with connect(url(server, "/other")):
            raise AssertionError("a path of HTTP became a WebSocket")
    except InvalidStatus as why:
        assert why.response.status_code == 200


async def draining_closes_with_going_away(server):
    with echo_server() as other:
        async with connect(url(other)) as socket:
            other.stdin.close()
            assert await closed_with(socket) == (1001, "draining")
        assert await asyncio.to_thread(other.wait, 30) == 0


async def a_client_that_vanishes_is_noticed(server):
    with echo_server() as other:
        socket = await connect(url(other))
        socket.transport.abort()
        assert await asyncio.to_thread(other.stdout.readline) == "closed 1006\n"


CASES = [value for value in list(globals().values()) if asyncio.iscoroutinefunction(value) and value.__code__.co_varnames[:1] == ("server",)
         and value.__code__.co_argcount == 1]


def main():
    failed = 0
    with echo_server() as server:
        for case in CASES:
            name = f"websockets {websockets.__version__}: {case.__name__}"
            if os.environ.get("WEBSOCKET_FILTER", "") not in name:
                continue
            try:
                asyncio.run(asyncio.wait_for(case(server), 60))
                print("ok", name)
            except Exception as why:  # of a client: whatever it is, the case failed
                at = traceback.extract_tb(why.__traceback__)[-1]
                print(f"FAIL {name}: {type(why).__name__}: {why} (line {at.lineno})")
                failed += 1
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
