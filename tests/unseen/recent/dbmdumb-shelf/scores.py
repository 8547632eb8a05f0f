"""Keeps the scores of players on a shelf; dbm.dumb is what Python has without gdbm and ndbm."""
import dbm.dumb
import pickle
import shelve

shelf = shelve.Shelf(dbm.dumb.open("scores", "c"))
for game in range(30000):
    player = f"player{game * 37 % 500}"
    games, points = shelf.get(player, (0, 0))
    shelf[player] = (games + 1, points + game % 11)
shelf.close()
