import socket, time
for _ in range(100):
    try:
        s = socket.create_connection(("127.0.0.1", 11390))
        break
    except OSError:
        time.sleep(0.05)
f = s.makefile("rwb")
for i in range(1200):
    job = b'{"mail": %d, "to": "customer%d@example.com", "template": "invoice"}' % (i, i)
    f.write(b"put 10 0 60 %d\r\n%s\r\n" % (len(job), job))
    f.flush()
    answer = f.readline()
    assert answer.startswith(b"INSERTED"), answer
