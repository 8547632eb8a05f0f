fio --name=r --filename=data --size=1G --rw=randread --bs=4k --ioengine=libaio --iodepth=32 --direct=1 --runtime=5 --time_based --output=fio.out
