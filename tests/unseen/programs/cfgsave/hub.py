"""Home automation hub: keeps device state, saves it after every change."""
import json, os, random, time

STATE = "state.json"

def save(state):
    tmp = STATE + ".new"
    with open(tmp, "w") as f:
        json.dump(state, f, indent=1)
    os.replace(tmp, STATE)

def load():
    try:
        with open(STATE) as f:
            return json.load(f)
    except FileNotFoundError:
        return {"devices": {f"lamp{i}": {"on": False, "level": 0, "room": f"room{i % 9}"} for i in range(150)}}

rnd = random.Random(4)
state = load()
for event in range(300):
    dev = state["devices"][f"lamp{rnd.randrange(150)}"]
    dev["on"] = not dev["on"]
    dev["level"] = rnd.randrange(100)
    save(state)
    time.sleep(0.003)
