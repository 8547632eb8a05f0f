fio --name=r --filename=data --size=1G --rw=read --bs=16k --ioengine=psync --fadvise_hint=random --io_size=400M --output=fio.out
