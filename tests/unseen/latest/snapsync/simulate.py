"""Simulation that saves its state now and then; its trace may be lost."""
import os
import random

r = random.Random(8)


def save(step):
    with open("state.new", "wb") as out:
        out.write(r.randbytes(40_000))
    os.sync()
    os.rename("state.new", "state")
    os.sync()


with open("trace", "wb") as trace:
    for step in range(400):
        trace.write(r.randbytes(800_000))
        if step % 10 == 9:
            save(step)
print("40 states saved")
