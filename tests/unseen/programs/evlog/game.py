"""Game server simulation with an event log."""
import random

def log(kind, **details):
    with open("events.log", "a") as f:
        f.write(kind + " " + " ".join(f"{k}={v}" for k, v in details.items()) + "\n")

rnd = random.Random(11)
players = {f"p{i}": [0, 0] for i in range(200)}
for tick in range(15000):
    name = rnd.choice(list(players))
    pos = players[name]
    pos[0] += rnd.randint(-1, 1)
    pos[1] += rnd.randint(-1, 1)
    log("move", tick=tick, player=name, x=pos[0], y=pos[1])
