#!/usr/bin/env python3
"""receiver: takes webhooks as fast as Python can, and answers 200.

    receiver PIDFILE

listens on a free port of 127.0.0.1 and prints it.
"""
import asyncio
import os
import re
import sys

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Receiver(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
        self.waiting = b""

    def data_received(self, data):
        self.waiting += data
        while True:
            head = self.waiting.find(b"\r\n\r\n")
            if head < 0:
                return
            length = LENGTH.search(self.waiting, 0, head + 2)
            end = head + 4 + (int(length.group(1)) if length else 0)
            if len(self.waiting) < end:
                return
            self.waiting = self.waiting[end:]
            self.transport.write(ANSWER)


async def main():
    server = await asyncio.get_running_loop().create_server(Receiver, "127.0.0.1", 0)
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(str(os.getpid()))
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
