"""Servers of object stores, each with an empty bucket: moto for S3, fake-gcs-server for Google Cloud Storage, and
Azurite for Azure. While one runs, the environment names it to `fathom ship` as docs/how-to/ship-sessions.md says."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time

# The account that every Azurite has.
AZURITE = ("devstoreaccount1", "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==")


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
    import moto  # noqa: F401

    with s3_server() as (client, endpoint):
        def objects():
            pages = client.get_paginator("list_objects_v2").paginate(Bucket="bucket")
            names = [one["Key"] for page in pages for one in page.get("Contents", [])]
            return {name: client.get_object(Bucket="bucket", Key=name)["Body"].read() for name in names}

        yield "s3://bucket", objects, endpoint


@contextlib.contextmanager
def gcs(work):
    from google.auth.credentials import AnonymousCredentials
    from google.cloud.storage import Client

    program = shutil.which("fake-gcs-server")
    if not program:
        raise ImportError("fake-gcs-server is not in PATH: go install github.com/fsouza/fake-gcs-server@latest")
    number = port()
    endpoint = f"http://127.0.0.1:{number}"
    account = work / "service-account.json"
    account.write_text(json.dumps({"gcs_base_url": endpoint, "disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}))
    client = Client(project="test", credentials=AnonymousCredentials(), client_options={"api_endpoint": endpoint})
    command = [program, "-scheme", "http", "-host", "127.0.0.1", "-port", str(number), "-backend", "memory", "-external-url", endpoint,
               "-public-host", f"127.0.0.1:{number}"]
    with running(command, lambda: client.create_bucket("bucket", timeout=5), GOOGLE_SERVICE_ACCOUNT=str(account)):
        yield "gs://bucket", lambda: {blob.name: blob.download_as_bytes() for blob in client.list_blobs("bucket")}, endpoint


@contextlib.contextmanager
def azure(work):
    from azure.storage.blob import BlobServiceClient

    program = shutil.which("azurite-blob")
    if not program:
        raise ImportError("azurite-blob is not in PATH: npm install azurite")
    number = port()
    account, key = AZURITE
    endpoint = f"http://127.0.0.1:{number}/{account}"
    container = BlobServiceClient(endpoint, credential={"account_name": account, "account_key": key}).get_container_client("bucket")
    command = [program, "--silent", "--skipApiVersionCheck", "--location", str(work / "azurite"), "--blobHost", "127.0.0.1",
               "--blobPort", str(number)]
    environment = {"AZURE_STORAGE_ACCOUNT_NAME": account, "AZURE_STORAGE_ACCOUNT_KEY": key, "AZURE_STORAGE_ENDPOINT": endpoint,
                   "AZURE_ALLOW_HTTP": "true"}
    with running(command, container.create_container, **environment):
        yield "az://bucket", lambda: {blob.name: container.download_blob(blob.name).readall() for blob in container.list_blobs()}, endpoint
