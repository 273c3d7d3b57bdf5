#!/usr/bin/env python3
"""receiver: takes webhooks for a test.

    receiver LOG [CERT KEY]

listens on a free port of 127.0.0.1 and prints it, then writes each request as a
line of JSON into LOG before it answers.  The last part of the path, or else
the topic, says what the answer is:

    status-404          that status, with a body
    redirect            302 to /elsewhere
    busy                429, Retry-After: 7
    flaky               503 at first, 200 when the same id comes again
    hang                none, until the other side gives up
    cut                 the connection is closed instead
    flood               more bytes than anybody wants
    binary              400 with bytes that are no text
    anything else       200
"""
import json
import socket
import socketserver
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler

lock = threading.Lock()
seen = set()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def note(self, body):
        line = json.dumps({
            "method": self.command, "path": self.path, "body": body.decode(),
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "port": self.client_address[1]})
        with lock, open(sys.argv[1], "a", encoding="utf-8") as log:
            log.write(line + "\n")

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def take(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        key = self.headers.get("Idempotency-Key")
        behaviour = self.path.rsplit("/", 1)[-1]
        if behaviour in ("", "hook"):
            behaviour = self.headers.get("Ujobs-Topic", "")
        self.note(body)
        with lock:
            again = key in seen
            seen.add(key)
        if behaviour.startswith("status-"):
            self.answer(int(behaviour[7:]), b"this is what I think\nof it")
        elif behaviour == "redirect":
            self.answer(302, Location="/elsewhere")
        elif behaviour == "busy":
            self.answer(429, Retry_After="7")
        elif behaviour == "flaky":
            self.answer(200 if again else 503)
        elif behaviour == "hang":
            self.connection.recv(1)
            self.close_connection = True
        elif behaviour == "cut":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        elif behaviour == "flood":
            try:
                self.answer(200, b"x" * 50_000_000)
            except OSError:
                self.close_connection = True
        elif behaviour == "binary":
            self.answer(400, b"\xff\xfe\x00\xe4 no \xed\xa0\x80 text")
        else:
            self.answer(200, b"thanks")

    do_POST = do_PUT = do_PATCH = do_GET = take

    def log_message(self, *arguments):
        pass


class Receiver(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 100

    def __init__(self, files):
        super().__init__(("127.0.0.1", 0), Handler)
        self.context = None
        if files:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*files)

    def finish_request(self, request, client_address):
        if self.context:
            request = self.context.wrap_socket(request, server_side=True)
        super().finish_request(request, client_address)

    def handle_error(self, request, client_address):
        pass


receiver = Receiver(sys.argv[2:4])
print(receiver.server_address[1], flush=True)
receiver.serve_forever()
