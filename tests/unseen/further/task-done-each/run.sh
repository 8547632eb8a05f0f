export TASKRC=$PWD/taskrc
for n in $(seq 10 59); do
  task 00000000-0000-4000-8000-0000000000$n done > /dev/null 2>&1 || exit 1
done
task status:completed count 2> /dev/null
