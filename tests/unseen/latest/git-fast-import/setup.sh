python3 - <<'P'
with open("history", "w") as out:
    for n in range(1, 6001):
        text = "".join(f"line {k} of version {n * (k % 3)}\n" for k in range(60))
        out.write(f"commit refs/heads/main\ncommitter A <a@example.org> {1700000000 + n} +0000\n")
        out.write(f"data 7\nchange\n\nM 100644 inline dir{n % 20}/file{n % 300}\ndata {len(text)}\n{text}\n")
P
