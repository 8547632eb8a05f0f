/usr/bin/python3 - <<'P'
with open("trees.csv", "w") as f:
    f.write("id,species,lon,lat\n")
    for n in range(8000):
        f.write(f"{n},species {n % 40},{13 + n % 500 / 1000},{52 + n // 500 / 1000}\n")
P
