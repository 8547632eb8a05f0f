fio --name=r --filename=data --size=1G --rw=randread --bs=4k --ioengine=psync --io_size=100M --output=fio.out
