/usr/bin/python3 - <<'P'
import struct
with open("day.pcap", "wb") as f:
    f.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
    for n in range(1000000):
        body = b"%08d" % n + bytes(40)
        udp = struct.pack(">HHHH", 53 if n % 4 else 123, 1024 + n % 60000, 8 + len(body), 0) + body
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), n % 65536, 0, 64, 17, 0, bytes((10, 0, 0, n % 250)), bytes((10, 0, 1, 1))) + udp
        f.write(struct.pack("<IIII", 1790000000 + n // 1000, n % 1000, len(ip), len(ip)) + ip)
P
