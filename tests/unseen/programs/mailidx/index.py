"""Builds a word index of a maildir."""
import os, re, collections

WORD = re.compile(rb"[a-z]{4,}")
index = collections.Counter()
for name in os.listdir("maildir"):
    with open(os.path.join("maildir", name), "rb") as f:
        index.update(set(WORD.findall(f.read())))
print(len(index), "words")
