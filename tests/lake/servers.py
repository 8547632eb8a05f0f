"""Servers of object stores, each with an empty bucket: moto for S3, fake-gcs-server for Google Cloud Storage, and
Azurite for Azure. While one runs, the environment names it to `fathom ship` as docs/how-to/ship-sessions.md says."""

import contextlib
import datetime
import hashlib
import http.server
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from email.utils import formatdate
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

# The account that every Azurite has.
AZURITE = ("devstoreaccount1", "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==")


class MissingError(Exception):
    """A program that is not there."""


def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextlib.contextmanager
def running(command, make, **environment):
    """A server while it runs, once `make` has made its bucket."""
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        for attempt in range(100):
            try:
                make()
                break
            except Exception as error:
                if attempt == 99 or server.poll() is not None:
                    sys.exit(f"{command[0]} did not start: {error}")
                time.sleep(0.2)
        yield
    finally:
        server.terminate()
        server.wait()
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def s3_server():
    """A client and the address of a server of S3."""
    import boto3

    number = port()
    endpoint = f"http://127.0.0.1:{number}"
    environment = {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "key",
                   "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}
    client = boto3.client("s3", endpoint_url=endpoint, aws_access_key_id="key", aws_secret_access_key="secret", region_name="us-east-1")
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(number)]
    with running(command, lambda: client.create_bucket(Bucket="bucket"), **environment):
        yield client, endpoint


@contextlib.contextmanager
def s3(work):
    """The URL of a bucket, what gives its objects by name, and the address. So do the others."""
    with s3_server() as (client, endpoint):
        def objects():
            pages = client.get_paginator("list_objects_v2").paginate(Bucket="bucket")
            names = [one["Key"] for page in pages for one in page.get("Contents", [])]
            return {name: client.get_object(Bucket="bucket", Key=name)["Body"].read() for name in names}

        yield "s3://bucket", objects, endpoint


class Translator(http.server.BaseHTTPRequestHandler):
    """Google's XML API, by which `fathom ship` writes, in front of fake-gcs-server, which has the JSON API only.
    https://cloud.google.com/storage/docs/xml-api/reference-methods"""

    protocol_version = "HTTP/1.1"
    upstream = None
    pieces = {}

    def log_message(self, *_):
        pass

    def json_api(self, method, path, body=None, headers=None):
        request = urllib.request.Request(self.upstream + path, body, headers or {}, method=method)
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, dict(answer.headers), answer.read()
        except urllib.error.HTTPError as error:
            return error.code, dict(error.headers), error.read()

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in dict(headers).items():
            if name.lower() in ("etag", "last-modified", "x-goog-generation", "content-range"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def upload(self, bucket, key, body):
        name = quote(key, safe="")
        status, _, answer = self.json_api("POST", f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={name}", body,
                                          {"Content-Type": "application/octet-stream"})
        made = json.loads(answer)
        return status, {"ETag": made.get("etag", ""), "x-goog-generation": made.get("generation", "")}

    def handle_request(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        bucket, _, key = unquote(url.path).lstrip("/").partition("/")
        words = {name: values[0] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
        place = f"/storage/v1/b/{bucket}/o/{quote(key, safe='')}"
        upload = words.get("uploadId")
        if self.command == "GET" and not key:
            self.listed(bucket, words)
        elif self.command == "POST" and "uploads" in words:
            upload = str(len(self.pieces))
            self.pieces[upload] = {}
            self.answer(200, f"<InitiateMultipartUploadResult><Bucket>{bucket}</Bucket><Key>{escape(key)}</Key><UploadId>{upload}</UploadId>"
                             "</InitiateMultipartUploadResult>".encode())
        elif self.command == "PUT" and upload:
            self.pieces[upload][int(words["partNumber"])] = body
            self.answer(200, headers={"ETag": f'"{hashlib.md5(body).hexdigest()}"'})
        elif self.command == "POST" and upload:
            parts = self.pieces.pop(upload)
            named = [(int(part.findtext("{*}PartNumber")), part.findtext("{*}ETag").strip('"')) for part in ElementTree.fromstring(body)]
            if named != [(number, hashlib.md5(part).hexdigest()) for number, part in sorted(parts.items())]:
                return self.answer(400, b"<Error><Code>InvalidPart</Code></Error>")
            status, headers = self.upload(bucket, key, b"".join(part for _, part in sorted(parts.items())))
            self.answer(status, f"<CompleteMultipartUploadResult><ETag>{escape(headers['ETag'])}</ETag></CompleteMultipartUploadResult>".encode(),
                        headers)
        elif self.command == "PUT":
            status, headers = self.upload(bucket, key, body)
            self.answer(status, headers=headers)
        elif self.command in ("GET", "HEAD"):
            status, headers, found = self.json_api("GET", f"{place}?alt=media", headers={"Range": self.headers["Range"]} if "Range" in self.headers else {})
            headers.setdefault("Last-Modified", formatdate(usegmt=True))
            self.answer(status, found, headers)
        elif upload:
            self.pieces.pop(upload, None)
            self.answer(204)
        else:
            self.answer(self.json_api("DELETE", place)[0])

    def listed(self, bucket, words):
        # Three names a page, so that there are several.
        query = {"prefix": words.get("prefix", ""), "maxResults": "3"}
        query |= {other: words[name] for name, other in [("delimiter", "delimiter"), ("continuation-token", "pageToken"), ("start-after", "startOffset")]
                  if name in words}
        status, _, body = self.json_api("GET", f"/storage/v1/b/{bucket}/o?{urlencode(query)}")
        found = json.loads(body)
        items = [f"<Contents><Key>{escape(one['name'])}</Key><LastModified>{one['updated']}</LastModified><ETag>{escape(one['etag'])}</ETag>"
                 f"<Size>{one['size']}</Size></Contents>" for one in found.get("items", [])]
        items += [f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>" for one in found.get("prefixes", [])]
        if "nextPageToken" in found:
            items.append(f"<NextContinuationToken>{escape(found['nextPageToken'])}</NextContinuationToken>")
        self.answer(status, f"<ListBucketResult>{''.join(items)}</ListBucketResult>".encode())

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_request


@contextlib.contextmanager
def translated(endpoint):
    """The address of a translator to the server at `endpoint`."""
    handler = type("Handler", (Translator,), {"upstream": endpoint, "pieces": {}})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def gcs(work):
    from google.auth.credentials import AnonymousCredentials
    from google.cloud.storage import Client

    program = shutil.which("fake-gcs-server")
    if not program:
        raise MissingError("fake-gcs-server is not in PATH: go install github.com/fsouza/fake-gcs-server@latest")
    number = port()
    endpoint = f"http://127.0.0.1:{number}"
    client = Client(project="test", credentials=AnonymousCredentials(), client_options={"api_endpoint": endpoint})
    command = [program, "-scheme", "http", "-host", "127.0.0.1", "-port", str(number), "-backend", "memory", "-external-url", endpoint,
               "-public-host", f"127.0.0.1:{number}"]
    account = work / "service-account.json"
    with translated(endpoint) as xml, running(command, lambda: client.create_bucket("bucket", timeout=5), GOOGLE_SERVICE_ACCOUNT=str(account)):
        account.write_text(json.dumps({"gcs_base_url": xml, "disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}))
        yield "gs://bucket", lambda: {blob.name: blob.download_as_bytes() for blob in client.list_blobs("bucket")}, endpoint


@contextlib.contextmanager
def azure(work, with_sas=False):
    from azure.storage.blob import BlobServiceClient, ContainerSasPermissions, generate_container_sas

    program = shutil.which("azurite-blob")
    if not program:
        raise MissingError("azurite-blob is not in PATH: npm install azurite")
    number = port()
    account, key = AZURITE
    endpoint = f"http://127.0.0.1:{number}/{account}"
    container = BlobServiceClient(endpoint, credential={"account_name": account, "account_key": key}).get_container_client("bucket")
    command = [program, "--silent", "--skipApiVersionCheck", "--location", str(work / f"azurite-{number}"), "--blobHost", "127.0.0.1",
               "--blobPort", str(number)]
    environment = {"AZURE_STORAGE_ACCOUNT_NAME": account, "AZURE_STORAGE_ENDPOINT": endpoint, "AZURE_ALLOW_HTTP": "true"}
    if with_sas:
        may = ContainerSasPermissions(read=True, write=True, delete=True, list=True, create=True, add=True)
        tomorrow = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
        environment["AZURE_STORAGE_SAS_TOKEN"] = generate_container_sas(account, "bucket", account_key=key, permission=may, expiry=tomorrow)
    else:
        environment["AZURE_STORAGE_ACCOUNT_KEY"] = key
    with running(command, container.create_container, **environment):
        yield "az://bucket", lambda: {blob.name: container.download_blob(blob.name).readall() for blob in container.list_blobs()}, endpoint


def azure_sas(work):
    return azure(work, with_sas=True)
