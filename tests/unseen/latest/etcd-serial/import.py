"""Imports the service catalog into etcd, key by key."""
import base64
import http.client
import json


def b64(text):
    return base64.b64encode(text.encode()).decode()


client = http.client.HTTPConnection("127.0.0.1", 23790)
for n in range(1200):
    entry = {"host": f"10.1.{n // 250}.{n % 250}", "port": 8000 + n % 100, "weight": 10}
    body = {"key": b64(f"/services/web/{n:05}"), "value": b64(json.dumps(entry))}
    client.request("POST", "/v3/kv/put", json.dumps(body))
    answer = client.getresponse()
    text = answer.read()
    if answer.status != 200:
        raise SystemExit(f"etcd: {answer.status} {text}")
print("1200 keys")
