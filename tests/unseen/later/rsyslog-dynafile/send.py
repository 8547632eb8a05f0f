import socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.connect("log.sock")
for i in range(60000):
    s.send(b"<13>Nov 23 10:%02d:%02d service%d: request %d answered with status 200 in 17 ms" % (i // 60 % 60, i % 60, i * 7 % 40, i))
