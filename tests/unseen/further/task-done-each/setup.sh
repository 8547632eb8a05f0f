cat > taskrc <<C
data.location=$PWD/tasks
confirmation=off
verbose=nothing
hooks=off
gc=off
bulk=0
C
mkdir tasks
/usr/bin/python3 - <<'P' > tasks.json
import json
print(json.dumps([{"description": f"call customer {n}", "status": "pending", "entry": "20240101T000000Z", "uuid": f"00000000-0000-4000-8000-{n:012d}"} for n in range(1500)]))
P
TASKRC=$PWD/taskrc task import tasks.json > /dev/null 2>&1
