"""Imports the service catalog into etcd, a thousand keys to a transaction."""
import base64
import http.client
import json


def b64(text):
    return base64.b64encode(text.encode()).decode()


def put(n):
    entry = {"host": f"10.{n // 62500}.{n // 250 % 250}.{n % 250}", "port": 8000 + n % 100, "weight": 10}
    return {"requestPut": {"key": b64(f"/services/web/{n:06}"), "value": b64(json.dumps(entry))}}


client = http.client.HTTPConnection("127.0.0.1", 23791)
for first in range(0, 60000, 1000):
    body = {"success": [put(n) for n in range(first, first + 1000)]}
    client.request("POST", "/v3/kv/txn", json.dumps(body))
    answer = client.getresponse()
    text = answer.read()
    if answer.status != 200:
        raise SystemExit(f"etcd: {answer.status} {text}")
print("60000 keys")
