export TASKRC=$PWD/taskrc
task $(seq -f '00000000-0000-4000-8000-0000000000%.0f' 10 59) done > /dev/null 2>&1 || exit 1
task status:completed count 2> /dev/null
