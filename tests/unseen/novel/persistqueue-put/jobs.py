import persistqueue

queue = persistqueue.Queue("jobs")
for n in range(4000):
    queue.put({"job": n, "argument": n * 7})
done = 0
while not queue.empty():
    queue.get()
    queue.task_done()
    done += 1
print(done)
