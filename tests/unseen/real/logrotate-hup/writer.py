import signal, sys, time
path, mode = sys.argv[1:3]
f = open(path, mode)
def reopen(*_):
    global f
    f.close(); f = open(path, mode)
signal.signal(signal.SIGHUP, reopen if len(sys.argv) > 3 else signal.SIG_IGN)
end = time.time() + 5
i = 0
while time.time() < end:
    f.write("".join(f"line {i + k} of the application's log, with some more words in it\n" for k in range(40)))
    f.flush(); i += 40; time.sleep(0.005)
